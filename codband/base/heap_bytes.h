#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace codband {

// What the allocator adds to a block, in the mean.
inline constexpr std::size_t kHeapBlock = 16;

// The memory of a container beside the object itself. Types that are not listed here have a
// function HeapBytes() of their own, which says the same of all that they own.
template <typename T>
std::size_t HeapBytes(const std::vector<T>& values) {
  return values.capacity() == 0 ? 0 : values.capacity() * sizeof(T) + kHeapBlock;
}
inline std::size_t HeapBytes(const std::string& text) {
  return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + 1 + kHeapBlock;
}

}  // namespace codband
