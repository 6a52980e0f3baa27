#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/base/bytes.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband {

// The model of a group that users may leave. Taking a user out subtracts sums; GroupModel watches
// that enough digits are left. Saved like a posterior. Not thread-safe for writing.
class GroupModel {
 public:
  explicit GroupModel(const linalg::GaussianPosterior& prior) : posterior_(prior) {}

  const linalg::GaussianPosterior& posterior() const { return posterior_; }
  std::uint64_t observations() const { return posterior_.stats().m(); }

  void Add(std::span<const double> x, double r) { posterior_.Add(x, r); }  // O(d²)
  void Add(const GroupModel& other);                                       // O(d³)

  // Takes out the observations of a user or several. False, and nothing is changed, if what is left
  // is so small beside what was once in the sums that rounding would show: then Reset. O(d³).
  [[nodiscard]] bool Remove(const linalg::SufficientStats& part);

  void Reset(const linalg::GaussianPosterior& posterior);  // O(d²)
  void Reset(const linalg::SufficientStats& sum);          // O(d³)

  static std::size_t SavedBytes(std::size_t dim);
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  linalg::GaussianPosterior posterior_;
  double peak_ = 0;  // the largest trace of the sums before a removal since they were last reset
};

}  // namespace codband
