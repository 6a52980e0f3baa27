#pragma once

#include <algorithm>
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

// The transpose of `count` rows of `columns` numbers to x; rows from `used` on repeat the one
// before. Inlined always, so that it is compiled for the vectors of its caller.
template <std::size_t count>
inline __attribute__((always_inline)) void LoadTransposed(const double* rows, std::size_t used,
                                                          std::size_t columns, double* x) {
  static_assert(count % kLanes == 0);
  const double* row[count];
  for (std::size_t lane = 0; lane < count; ++lane) {
    row[lane] = rows + std::min(lane, used - 1) * columns;
  }
  std::size_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::size_t lane = 0; lane < count; lane += kLanes) {
      Lanes from[kLanes];
      for (std::size_t k = 0; k < kLanes; ++k) from[k] = *AsLanes(row[lane + k] + i);
      double* const to = x + i * count + lane;
      Lanes low[2], high[2];  // of entries 0 and 2, 1 and 3 of pairs of rows
      for (std::size_t k = 0; k < 2; ++k) {
        low[k] = __builtin_shufflevector(from[2 * k], from[2 * k + 1], 0, 4, 2, 6);
        high[k] = __builtin_shufflevector(from[2 * k], from[2 * k + 1], 1, 5, 3, 7);
      }
      *AsLanes(to) = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
      *AsLanes(to + count) = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
      *AsLanes(to + 2 * count) = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
      *AsLanes(to + 3 * count) = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    }
  }
  for (; i < columns; ++i) {
    for (std::size_t lane = 0; lane < count; ++lane) x[i * count + lane] = row[lane][i];
  }
}

}  // namespace codband::linalg
