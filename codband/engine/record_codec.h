#pragma once

#include <cstdint>
#include <string_view>

#include "codband/base/bytes.h"
#include "codband/base/status.h"

namespace codband::engine {

// Decodes a record that must use every byte; otherwise the status says where it went wrong.
template <typename T, typename Read>
Result<T> DecodeWith(std::string_view bytes, const Read& read) {
  ByteReader in(bytes);
  T record;
  read(in, record);
  in.ExpectEnd();
  if (!in.ok()) return in.status();
  return record;
}

inline void SaveTime(ByteWriter& out, std::int64_t ms) { out.U64(static_cast<std::uint64_t>(ms)); }
inline std::int64_t LoadTime(ByteReader& in, std::string_view field) {
  return static_cast<std::int64_t>(in.U64(field));
}

}  // namespace codband::engine
