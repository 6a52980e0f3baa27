#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/policy.h"

namespace codband {

// How the record of a user was saved.
struct RecordLayout {
  std::size_t dim;  // features of a vector, intercept included
  // Whether sums and windows are over the columns that occur. Before format 5 they were over all.
  bool columns;
  // Features of a vector now, which bound the columns.
  std::size_t widest = linalg::kMaxDimension;
};

// The last observations of a period, a ring buffer: what likelihood=product scores. Not thread-safe
// for writing.
class RecentObservations {
 public:
  // Holds at most `capacity` observations; 0 holds none and needs no memory.
  RecentObservations(std::size_t dim, std::size_t capacity) : dim_(dim), capacity_(capacity) {}

  std::size_t size() const { return rewards_.size(); }
  std::size_t capacity() const { return capacity_; }
  // Row-major, in the same (unspecified) order.
  std::span<const double> features() const { return features_; }
  std::span<const double> rewards() const { return rewards_; }

  void Push(std::span<const double> x, double r);
  void Clear();
  // Vectors have `dim` features from now on; the new ones, before the last one if that is an
  // intercept, were 0.
  void Grow(std::size_t dim, bool intercept);

  std::size_t HeapBytes() const {
    return codband::HeapBytes(features_) + codband::HeapBytes(rewards_);
  }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::size_t dim_;
  std::size_t capacity_;
  std::vector<double> features_;
  std::vector<double> rewards_;
  std::size_t next_ = 0;  // where the next one goes once all places are taken
};

// A user's current stationary period: the observations D since the last detected change, as their
// sufficient statistics, and the pool model z that they are assigned to. Parts that need more of D
// than its sums pay for it alone: `recency` is there with prior=hawkes, `recent` with
// likelihood=product, and what a change detector keeps is its own (change_detector.h).
struct Period {
  ModelId model = kNoModel;
  linalg::SufficientStats data;           // over the columns that occur
  std::unique_ptr<Recency> recency = {};  // what the period added to its model's
  std::unique_ptr<RecentObservations> recent = {};

  // D ∪ {(x, r)}.
  void Observe(std::span<const double> x, double r);
  // D = ∅; `model` is left for the caller.
  void Clear();

  // The period's contribution to the recency of its model; zero without prior=hawkes.
  const Recency& recency_mass() const { return RecencyMass(recency.get()); }

  std::size_t HeapBytes() const;

  // `recent` is not in these bytes: format 3 has it further on, see WindowTestState.
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in, const RecordLayout& layout);
};

}  // namespace codband
