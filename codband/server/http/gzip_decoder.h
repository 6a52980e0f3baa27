#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// Decodes a body of gzip (RFC 1952), of one member or of several, piece by piece. A small body can
// decode to a very large one: the caller says how much it takes at a time. Not thread-safe.
class GzipDecoder {
 public:
  GzipDecoder();
  ~GzipDecoder();
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  // Takes bytes from the front of `input` and appends at most `most` decoded ones to `out`. All of
  // the input is taken and nothing is left to be decoded once it returns with less than `most`
  // appended. kInvalidArgument if the bytes are not gzip.
  Status Decode(std::string_view& input, std::string& out, std::size_t most);
  // After the last piece: kInvalidArgument if the body ends within a member.
  Status Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace codband::server
