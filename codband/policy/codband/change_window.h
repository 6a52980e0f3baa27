#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/linalg/column_set.h"
#include "codband/policy/codband/period.h"

namespace codband {

// A user's last observations in the order they came, a ring buffer: a change found now is dated
// among them. Features are held in single precision: callers pass features that are so already
// (RoundFeatures), so that nothing is lost. Not thread-safe for writing.
class ChangeWindow {
 public:
  // 0 holds none and needs no memory. `intercept`: the last feature of a vector is one.
  ChangeWindow(bool intercept, std::size_t capacity)
      : columns_(intercept), usual_(static_cast<std::uint32_t>(capacity)), capacity_(usual_) {}

  std::size_t size() const { return rows_.size() / width(); }

  // Counted from the newest: 0 is the last that came.
  void ReadFeatures(std::size_t age, std::span<double> x) const;
  double reward(std::size_t age) const { return RewardAt(Place(age)); }
  // ln of the density of the reward given all rewards of the user before it.
  double log_predictive(std::size_t age) const {
    return rows_[Place(age) * width() + columns_.size()];
  }
  // What was taken from the reward as the item's own.
  double offset(std::size_t age) const { return offsets_ == nullptr ? 0 : (*offsets_)[Place(age)]; }

  // Allocates only while the window has not been full before, and for columns that are new to it.
  void Push(std::span<const double> x, double r, double log_predictive, double offset = 0);
  // Forgets all but the newest `count`.
  void KeepNewest(std::size_t count);
  // Holds kLong times as many from now on, or as many as at first.
  static constexpr std::uint32_t kLong = 4;
  void SetLong(bool is_long);

  std::size_t HeapBytes() const;

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in, const RecordLayout& layout);
  // Offsets, by themselves; loaded after the rest.
  void SaveOffsets(ByteWriter& out) const;
  void LoadOffsets(ByteReader& in);

 private:
  // Numbers of an observation: features, log predictive, and the bits of its reward in two places.
  std::size_t width() const { return columns_.size() + 3; }
  double RewardAt(std::size_t place) const;
  void SetReward(std::size_t place, double r);
  void TakeColumns(std::span<const double> x);
  void Unroll(std::size_t count);
  std::size_t Place(std::size_t age) const { return (newest_ + size() - age % size()) % size(); }

  linalg::ColumnSet columns_;  // that have occurred
  std::uint32_t usual_;        // capacity
  std::uint32_t capacity_;     // now; not saved: a window of more than usual_ is long
  std::uint32_t newest_ = 0;
  std::vector<float> rows_;  // one block of memory for all: every user has a window
  std::unique_ptr<std::vector<double>> offsets_;  // nullptr: all are 0
};

// Rounds to what ChangeWindow can hold.
void RoundFeatures(std::span<double> x);

}  // namespace codband
