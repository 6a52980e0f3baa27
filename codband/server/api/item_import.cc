#include "codband/server/api/item_import.h"

#include <fmt/format.h>

#include "codband/server/api/request_json.h"

namespace codband::server {

Status ItemImport::Feed(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (unfinished_.size() + part.size() > max_line_bytes_) {
      ++line_;
      return TooLong();
    }
    if (end == std::string_view::npos) {
      unfinished_ += part;
      return {};
    }
    if (unfinished_.empty()) {
      CODBAND_RETURN_IF_ERROR(ReadLine(part));
    } else {
      unfinished_ += part;
      CODBAND_RETURN_IF_ERROR(ReadLine(unfinished_));
      unfinished_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  return {};
}

Status ItemImport::Finish() {
  if (!unfinished_.empty()) CODBAND_RETURN_IF_ERROR(ReadLine(unfinished_));
  unfinished_.clear();
  return {};
}

Status ItemImport::ReadLine(std::string_view line) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {};
  Result<engine::Item> item = ParseItem(parser_, line, dim_);
  if (!item.ok()) return item.status();
  items_.push_back(std::move(item).value());
  return {};
}

Status ItemImport::TooLong() const {
  return Status::InvalidArgument(
      fmt::format("body: has a line of more than {} bytes", max_line_bytes_));
}

}  // namespace codband::server
