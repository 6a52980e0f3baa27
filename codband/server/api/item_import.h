#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/item.h"

namespace codband::server {

// Reads a bulk import, one JSON object a line, from pieces of any size. Blank lines are passed
// over. After an error it is of no more use. Not thread-safe.
class ItemImport {
 public:
  // `max_line_bytes` bounds what is kept of an unfinished line.
  ItemImport(std::size_t dim, std::size_t max_line_bytes)
      : dim_(dim), max_line_bytes_(max_line_bytes) {}

  // The next bytes. kInvalidArgument as in request_json.h, about the line number line().
  Status Feed(std::string_view bytes);
  // All bytes were fed; the last line needs no line break.
  Status Finish();

  std::uint64_t line() const { return line_; }  // the last one looked at, from 1
  std::uint64_t bytes() const { return bytes_; }
  std::size_t ready() const { return items_.size(); }  // items read and not taken
  std::vector<engine::Item> Take() { return std::exchange(items_, {}); }

 private:
  Status ReadLine(std::string_view line);
  Status TooLong() const;

  std::size_t dim_;
  std::size_t max_line_bytes_;
  std::string unfinished_;
  std::vector<engine::Item> items_;
  std::uint64_t line_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace codband::server
