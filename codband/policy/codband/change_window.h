#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"

namespace codband {

// A user's last observations in the order they came, a ring buffer: a change found now is dated
// among them. Features are held in single precision: callers pass features that are so already
// (RoundFeatures), so that nothing is lost. Not thread-safe for writing.
class ChangeWindow {
 public:
  // 0 holds none and needs no memory.
  ChangeWindow(std::size_t dim, std::size_t capacity)
      : dim_(static_cast<std::uint32_t>(dim)), capacity_(static_cast<std::uint32_t>(capacity)) {}

  std::size_t size() const { return rewards_.size(); }

  // Counted from the newest: 0 is the last that came.
  void ReadFeatures(std::size_t age, std::span<double> x) const;
  double reward(std::size_t age) const { return rewards_[Place(age)]; }
  // ln of the density of the reward given all rewards of the user before it.
  double log_predictive(std::size_t age) const { return rows_[Place(age) * (dim_ + 1) + dim_]; }

  // Allocates only while the window has not been full before.
  void Push(std::span<const double> x, double r, double log_predictive);
  // Forgets all but the newest `count`.
  void KeepNewest(std::size_t count);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  void Reserve();
  std::size_t Place(std::size_t age) const { return (newest_ + size() - age % size()) % size(); }

  std::uint32_t dim_;
  std::uint32_t capacity_;
  std::uint32_t newest_ = 0;
  std::vector<float> rows_;  // the features of an observation, then its log predictive
  std::vector<double> rewards_;
};

// Rounds to what ChangeWindow can hold.
void RoundFeatures(std::span<double> x);

}  // namespace codband
