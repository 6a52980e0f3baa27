#pragma once

#include <cstddef>

namespace codband::linalg {

// Four numbers side by side, from four different problems of the same shape (four arms, four
// models). Arithmetic is element by element, so each problem gets the bits it would get alone,
// whether the processor does two or four at a time. A scalar operand stands for all four.
inline constexpr std::size_t kLanes = 4;
// Not `using`: clang would drop the alignment. NOLINTNEXTLINE(modernize-use-using)
typedef double Lanes
    __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));
static_assert(alignof(Lanes) == alignof(double));

// Plain doubles seen as lanes, kLanes of them each. Needs no alignment beyond that of a double.
inline Lanes* AsLanes(double* data) { return reinterpret_cast<Lanes*>(data); }
inline const Lanes* AsLanes(const double* data) { return reinterpret_cast<const Lanes*>(data); }

}  // namespace codband::linalg
