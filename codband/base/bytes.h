#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband {

// Appends values to a byte string: little-endian, fixed width, no padding; doubles as their IEEE
// bits, so that a round trip is exact. Not thread-safe.
class ByteWriter {
 public:
  // Room for so many bytes in all.
  void Reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  void U8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void U32(std::uint32_t value);
  void U64(std::uint64_t value);
  void Double(double value);
  void Doubles(std::span<const double> values);  // without a length: the reader knows it
  void Floats(std::span<const float> values);
  void String(std::string_view value);  // length, then bytes

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a ByteWriter wrote. Every read is bounds-checked. The first error is sticky: later
// reads return zeros and do not advance, so that a decoder may read a whole record and check
// status() once, before it uses sizes or indices. Messages name the field and the byte offset.
// Borrows the bytes. Not thread-safe.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint8_t U8(std::string_view field);
  std::uint32_t U32(std::string_view field);
  std::uint64_t U64(std::string_view field);
  double Double(std::string_view field);                        // fails if not finite
  void Doubles(std::string_view field, std::span<double> out);  // fails if any is not finite
  void Floats(std::string_view field, std::span<float> out);    // the same
  std::string String(std::string_view field);

  // Whether the next eight bytes are those of `value`; if so, they are read. Never fails.
  bool Skip(std::uint64_t value);

  // The number of records that follow. Fails unless they fit into the remaining bytes at
  // `min_record_bytes` each, so that a corrupt count cannot cause a huge allocation.
  std::size_t Count(std::string_view field, std::size_t min_record_bytes);

  // Records an error found by the caller (a value out of range), unless there is one already.
  void Fail(std::string_view field, std::string_view problem);

  // Fails unless all bytes have been read.
  void ExpectEnd();

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

 private:
  template <typename T>
  T Integer(std::string_view field);
  template <typename T>
  void Reals(std::string_view field, std::span<T> out);
  bool Need(std::string_view field, std::size_t size);

  std::string_view bytes_;
  std::size_t position_ = 0;
  Status status_;
};

// CRC-32 (the one of zip and PNG) of the bytes.
std::uint32_t Crc32(std::string_view bytes);

}  // namespace codband
