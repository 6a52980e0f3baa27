#include "codband/base/bytes.h"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <cmath>

namespace codband {
namespace {

template <typename T>
void AppendLittleEndian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

}  // namespace

void ByteWriter::U32(std::uint32_t value) { AppendLittleEndian(bytes_, value); }
void ByteWriter::U64(std::uint64_t value) { AppendLittleEndian(bytes_, value); }
void ByteWriter::Double(double value) { U64(std::bit_cast<std::uint64_t>(value)); }

void ByteWriter::Doubles(std::span<const double> values) {
  bytes_.reserve(bytes_.size() + values.size() * sizeof(double));
  for (const double value : values) Double(value);
}

void ByteWriter::Floats(std::span<const float> values) {
  bytes_.reserve(bytes_.size() + values.size() * sizeof(float));
  for (const float value : values) U32(std::bit_cast<std::uint32_t>(value));
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
  if (!Need(field, sizeof(T))) return 0;
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[position_ + i]);
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(byte) << (8 * i)));
  }
  position_ += sizeof(T);
  return value;
}

std::uint8_t ByteReader::U8(std::string_view field) { return Integer<std::uint8_t>(field); }
std::uint32_t ByteReader::U32(std::string_view field) { return Integer<std::uint32_t>(field); }
std::uint64_t ByteReader::U64(std::string_view field) { return Integer<std::uint64_t>(field); }

double ByteReader::Double(std::string_view field) {
  double value = 0;
  Doubles(field, {&value, 1});
  return value;
}

void ByteReader::Doubles(std::string_view field, std::span<double> out) {
  for (double& slot : out) {
    slot = std::bit_cast<double>(U64(field));
    if (!std::isfinite(slot)) {
      Fail(field, fmt::format("is {}, expected a finite number", slot));
      slot = 0;
    }
  }
}

void ByteReader::Floats(std::string_view field, std::span<float> out) {
  for (float& slot : out) {
    slot = std::bit_cast<float>(U32(field));
    if (!std::isfinite(slot)) {
      Fail(field, fmt::format("is {}, expected a finite number", slot));
      slot = 0;
    }
  }
}

std::string ByteReader::String(std::string_view field) {
  const std::size_t size = Count(field, 1);
  if (!Need(field, size)) return {};
  std::string value(bytes_.substr(position_, size));
  position_ += size;
  return value;
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
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace codband
