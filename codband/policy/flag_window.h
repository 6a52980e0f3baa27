#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"

namespace codband {

// The last `capacity` yes/no flags, a ring buffer, and how many of them are raised. Not thread-safe
// for writing.
class FlagWindow {
 public:
  explicit FlagWindow(std::size_t capacity) : capacity_(capacity) {}

  std::size_t size() const { return flags_.size(); }
  std::size_t raised() const { return raised_; }

  void Push(bool flag);
  void Clear();

  std::size_t HeapBytes() const { return codband::HeapBytes(flags_); }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::size_t capacity_;
  std::vector<std::uint8_t> flags_;
  std::size_t next_ = 0;
  std::size_t raised_ = 0;
};

}  // namespace codband
