#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace codband::linalg {

// A SIMD vector of four numbers, from four different problems of the same shape (four arms, four
// models). Arithmetic is element-wise, so each problem is bit-identical to being computed alone,
// whether the processor has two or four lanes. A scalar operand is broadcast.
inline constexpr std::size_t kLanes = 4;
// Not `using`: clang would drop the alignment. NOLINTNEXTLINE(modernize-use-using)
typedef double Lanes
    __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));
static_assert(alignof(Lanes) == alignof(double));

// Memory at the start of a cache line: lanes do not lie across two, which costs time, and how much
// would be luck.
inline constexpr std::size_t kCacheLine = 64;
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{kCacheLine};

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* data, std::size_t) { ::operator delete(data, kLine); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};
using LaneBuffer = std::vector<double, CacheLineAllocator<double>>;

// Views plain doubles as lanes, kLanes each. Needs no alignment beyond that of a double.
inline Lanes* AsLanes(double* data) { return reinterpret_cast<Lanes*>(data); }
inline const Lanes* AsLanes(const double* data) { return reinterpret_cast<const Lanes*>(data); }

}  // namespace codband::linalg
