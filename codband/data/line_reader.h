#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::data {

// A file with a longer line is not text.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// Streams the lines of a file of any size, plain or gzip, through a bounded buffer. Removes line
// breaks "\n" and "\r\n", and a UTF-8 byte order mark at the beginning. Not thread-safe.
class LineReader {
 public:
  // kNotFound or kIoError with the path; kInvalidArgument for a directory.
  static Result<LineReader> Open(const std::filesystem::path& path);

  // Moves on to the next line. False at the end and on an error; status() says which:
  // kInvalidArgument for a line that is too long or a gzip file that is corrupt or truncated,
  // kIoError if reading fails.
  bool Next();
  // The current line, valid until Next is called. Precondition: Next returned true.
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }  // of the current line, from 1
  const Status& status() const { return status_; }
  // After the last line: kInvalidArgument if the file looks truncated, because that line has no
  // line break and either is malformed or belongs to a file too large to be written by hand.
  // Published files all end in a line break.
  Status CheckEnd(bool malformed) const;
  // How much of the file has been read, from 0 to 1.
  double share() const;

 private:
  struct Closer {
    void operator()(void* file) const;
  };

  LineReader() = default;
  bool Fill();  // reads more bytes into the buffer; false at the end

  std::string path_;
  std::unique_ptr<void, Closer> file_;  // of zlib
  std::uint64_t file_bytes_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;  // of the next line, in buffer_
  bool at_end_ = false;    // of the file: nothing comes after the buffer
  std::string_view line_;
  std::size_t number_ = 0;
  std::uint64_t bytes_ = 0;    // read so far, uncompressed
  bool unterminated_ = false;  // the current line has no line break
  Status status_;
};

}  // namespace codband::data
