#include "codband/data/line_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "codband/base/lines.h"

namespace codband::data {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;
constexpr std::uint64_t kHandWrittenBytes = std::uint64_t{1} << 16;

gzFile AsGz(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void LineReader::Closer::operator()(void* file) const { gzclose_r(AsGz(file)); }

Result<LineReader> LineReader::Open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return Status::InvalidArgument(
        fmt::format("{} is a directory, expected a file", path.string()));
  }
  LineReader reader;
  reader.path_ = path.string();
  errno = 0;
  // zlib reads files that are not gzip verbatim.
  reader.file_.reset(gzopen(path.c_str(), "rb"));
  if (!reader.file_) {
    const int reason = errno;
    const std::string message =
        fmt::format("cannot open {}: {}", path.string(), std::strerror(reason));
    return reason == ENOENT ? Status::NotFound(message) : Status::IoError(message);
  }
  gzbuffer(AsGz(reader.file_.get()), kReadBytes);
  reader.file_bytes_ = std::filesystem::file_size(path, error);
  if (error) reader.file_bytes_ = 0;
  return reader;
}

bool LineReader::Fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kReadBytes);
  const int got =
      gzread(AsGz(file_.get()), buffer_.data() + kept, static_cast<unsigned>(kReadBytes));
  buffer_.resize(kept + static_cast<std::size_t>(std::max(got, 0)));
  int code = Z_OK;
  const char* const reason = gzerror(AsGz(file_.get()), &code);
  if (got < 0 || code != Z_OK) {
    at_end_ = true;
    status_ = code == Z_ERRNO
                  ? Status::IoError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)))
                  : Status::InvalidArgument(fmt::format(
                        "{} is damaged after line {}: {}, expected a whole gzip file", path_,
                        number_, code == Z_BUF_ERROR ? "it ends too early" : reason));
    return false;
  }
  at_end_ = got == 0;
  bytes_ += static_cast<std::uint64_t>(got);
  return got > 0;
}

bool LineReader::Next() {
  std::size_t searched = 0;
  std::size_t end = std::string::npos;
  while (true) {
    end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos) break;
    searched = buffer_.size() - begin_;
    if (searched > kMaxLineBytes) {
      status_ = Status::InvalidArgument(
          fmt::format("{}, line {}: longer than {} bytes, expected a text file", path_, number_ + 1,
                      kMaxLineBytes));
      return false;
    }
    if (!Fill()) break;
  }
  if (!status_.ok() || (end == std::string::npos && begin_ == buffer_.size())) return false;
  line_ = std::string_view(buffer_).substr(begin_, std::min(end, buffer_.size()) - begin_);
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  unterminated_ = end == std::string::npos;
  ++number_;
  if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.remove_prefix(kByteOrderMark.size());
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  return true;
}

Status LineReader::CheckEnd(bool malformed) const {
  if (!unterminated_ || (!malformed && bytes_ <= kHandWrittenBytes)) return {};
  return Status::InvalidArgument(
      fmt::format("{} ends within line {}, expected a line break at its end: it has been cut off",
                  path_, number_));
}

double LineReader::share() const {
  if (file_bytes_ == 0) return 1;
  const auto read = static_cast<double>(gzoffset(AsGz(file_.get())));
  return std::clamp(read / static_cast<double>(file_bytes_), 0.0, 1.0);
}

}  // namespace codband::data
