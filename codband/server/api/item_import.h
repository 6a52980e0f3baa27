#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/item.h"
#include "codband/server/api/json_value.h"

namespace codband::server {

// Reads a bulk import (NDJSON: one JSON object per line) from pieces of any size. Blank lines are
// skipped. Must not be used after an error. Not thread-safe.
class ItemImport {
 public:
  // The parser is borrowed. A line may have `max_line_bytes`, which bounds the memory used.
  ItemImport(JsonParser& parser, std::size_t dim, std::size_t max_line_bytes)
      : parser_(parser), dim_(dim), max_line_bytes_(max_line_bytes) {}

  // The next bytes. kInvalidArgument as in request_json.h, about line number line().
  Status Feed(std::string_view bytes);
  // The end of the input; the last line needs no line break.
  Status Finish();

  std::uint64_t line() const { return line_; }  // the last one read, from 1
  std::uint64_t bytes() const { return bytes_; }
  std::size_t ready() const { return items_.size(); }  // items read and not taken
  std::vector<engine::Item> Take() { return std::exchange(items_, {}); }

 private:
  Status ReadLine(std::string_view line);
  Status TooLong() const;

  JsonParser& parser_;
  std::size_t dim_;
  std::size_t max_line_bytes_;
  std::string unfinished_;
  std::vector<engine::Item> items_;
  std::uint64_t line_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace codband::server
