#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::data {

// A longer line means that the file is no text.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// The lines of a file of any size, plain or gzip, one after the other in a buffer of fixed size.
// Line ends "\n" and "\r\n" and a byte order mark of UTF-8 at the beginning are taken off. Not
// thread-safe.
class LineReader {
 public:
  // kNotFound or kIoError with the path; kInvalidArgument for a directory.
  static Result<LineReader> Open(const std::filesystem::path& path);

  // Moves on to the next line. False at the end and when something is wrong; status() says which:
  // kInvalidArgument for a line that is too long or a gzip file that is damaged or ends too early,
  // kIoError for what the system refused.
  bool Next();
  // The current line, valid until Next is called. Precondition: Next returned true.
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }  // of the current line, from 1
  const Status& status() const { return status_; }
  // After the last line: kInvalidArgument if the file seems to have been cut off, as that line has
  // no end and either makes no sense (`malformed`) or is that of a file too large to be written by
  // hand. The published files all end in a line end.
  Status CheckEnd(bool malformed) const;
  // How much of the file has been read, from 0 to 1.
  double share() const;

 private:
  struct Closer {
    void operator()(void* file) const;
  };

  LineReader() = default;
  bool Fill();  // more bytes after what is left in the buffer; false at the end

  std::string path_;
  std::unique_ptr<void, Closer> file_;  // of zlib
  std::uint64_t file_bytes_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the next line, in buffer_
  bool at_end_ = false;    // of the file: nothing comes after the buffer
  std::string_view line_;
  std::size_t number_ = 0;
  std::uint64_t bytes_ = 0;    // unpacked, read so far
  bool unterminated_ = false;  // the current line has no end
  Status status_;
};

}  // namespace codband::data
