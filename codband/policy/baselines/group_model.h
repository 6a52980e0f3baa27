#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/base/bytes.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband {

// The posterior of a group that users may leave. Removing a user subtracts their sufficient
// statistics; GroupModel guards against cancellation. Const functions may run concurrently.
class GroupModel {
 public:
  explicit GroupModel(const linalg::GaussianPosterior& prior) : posterior_(prior) {}

  const linalg::GaussianPosterior& posterior() const { return posterior_; }
  std::uint64_t observations() const { return posterior_.stats().m(); }

  void Add(std::span<const double> x, double r) { posterior_.Add(x, r); }  // O(d²)
  void Add(const GroupModel& other);                                       // O(d³)

  // Subtracts the observations of one or more users. Returns false and changes nothing if the rest
  // is so small compared to what the sums once held that rounding errors would show; the caller
  // then recomputes the sum and calls Reset. O(d³).
  [[nodiscard]] bool Remove(const linalg::SufficientStats& part);

  // As GaussianPosterior::Grow.
  void Grow(std::size_t dim) { posterior_.Grow(dim); }

  void Reset(const linalg::GaussianPosterior& posterior);  // O(d²)
  void Reset(const linalg::SufficientStats& sum);          // O(d³)

  static std::size_t SavedBytes(std::size_t dim);
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  linalg::GaussianPosterior posterior_;
  double peak_ = 0;  // the largest trace of the sums at a removal since the last Reset
};

}  // namespace codband
