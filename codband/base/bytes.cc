#include "codband/base/bytes.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace codband {
namespace {

// Little-endian machines only: values are copied as they are in memory.
static_assert(std::endian::native == std::endian::little);

template <typename T>
void Append(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <typename T>
std::size_t FirstNotFinite(std::span<const T> values) {
  std::size_t i = 0;
  while (i < values.size() && std::isfinite(values[i])) ++i;
  return i;
}

}  // namespace

void ByteWriter::U32(std::uint32_t value) { Append(bytes_, &value, 1); }
void ByteWriter::U64(std::uint64_t value) { Append(bytes_, &value, 1); }
void ByteWriter::Double(double value) { U64(std::bit_cast<std::uint64_t>(value)); }

void ByteWriter::Doubles(std::span<const double> values) {
  Append(bytes_, values.data(), values.size());
}

void ByteWriter::Floats(std::span<const float> values) {
  Append(bytes_, values.data(), values.size());
}

void ByteWriter::String(std::string_view value) {
  U64(value.size());
  bytes_.append(value);
}

bool ByteReader::Need(std::string_view field, std::size_t size) {
  if (!ok()) return false;
  if (size <= remaining()) return true;
  Fail(field, fmt::format("needs {} bytes, {} are left", size, remaining()));
  return false;
}

template <typename T>
T ByteReader::Integer(std::string_view field) {
  T value = 0;
  if (!Need(field, sizeof(T))) return value;
  std::memcpy(&value, bytes_.data() + position_, sizeof(T));
  position_ += sizeof(T);
  return value;
}

template <typename T>
void ByteReader::Reals(std::string_view field, std::span<T> out) {
  if (out.empty()) return;
  if (!Need(field, out.size_bytes())) {
    std::ranges::fill(out, T{0});
    return;
  }
  std::memcpy(out.data(), bytes_.data() + position_, out.size_bytes());
  const std::size_t bad = FirstNotFinite(std::span<const T>(out));
  if (bad == out.size()) {
    position_ += out.size_bytes();
    return;
  }
  position_ += (bad + 1) * sizeof(T);
  Fail(field, fmt::format("is {}, expected a finite number", out[bad]));
  std::ranges::fill(out.subspan(bad), T{0});
}

std::uint8_t ByteReader::U8(std::string_view field) { return Integer<std::uint8_t>(field); }
std::uint32_t ByteReader::U32(std::string_view field) { return Integer<std::uint32_t>(field); }
std::uint64_t ByteReader::U64(std::string_view field) { return Integer<std::uint64_t>(field); }

double ByteReader::Double(std::string_view field) {
  double value = 0;
  Doubles(field, {&value, 1});
  return value;
}

void ByteReader::Doubles(std::string_view field, std::span<double> out) { Reals(field, out); }
void ByteReader::Floats(std::string_view field, std::span<float> out) { Reals(field, out); }

std::string ByteReader::String(std::string_view field) {
  const std::size_t size = Count(field, 1);
  if (!Need(field, size)) return {};
  std::string value(bytes_.substr(position_, size));
  position_ += size;
  return value;
}

bool ByteReader::Skip(std::uint64_t value) {
  if (!ok() || remaining() < sizeof(value)) return false;
  std::uint64_t next = 0;
  std::memcpy(&next, bytes_.data() + position_, sizeof(next));
  if (next != value) return false;
  position_ += sizeof(value);
  return true;
}

std::size_t ByteReader::Count(std::string_view field, std::size_t min_record_bytes) {
  const std::uint64_t count = U64(field);
  if (ok() && count > remaining() / min_record_bytes) {
    Fail(field, fmt::format("counts {} records, {} bytes are left", count, remaining()));
  }
  return ok() ? static_cast<std::size_t>(count) : 0;
}

void ByteReader::Fail(std::string_view field, std::string_view problem) {
  if (!ok()) return;
  status_ = Status::Corruption(fmt::format("{} {} (before byte {})", field, problem, position_));
}

void ByteReader::ExpectEnd() {
  if (ok() && remaining() > 0) {
    Fail("end of data", fmt::format("expected, but {} bytes follow", remaining()));
  }
}

std::uint32_t Crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace codband
