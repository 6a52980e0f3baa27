#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/policy.h"

namespace codband {

// The last observations, oldest overwritten first. Not thread-safe for writing.
class RecentObservations {
 public:
  // Remembers at most `capacity` observations; 0 remembers none and needs no memory.
  RecentObservations(std::size_t dim, std::size_t capacity) : dim_(dim), capacity_(capacity) {}

  std::size_t size() const { return rewards_.size(); }
  std::size_t capacity() const { return capacity_; }
  // Row-major, in the same (unspecified) order.
  std::span<const double> features() const { return features_; }
  std::span<const double> rewards() const { return rewards_; }

  void Push(std::span<const double> x, double r);
  void Clear();

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::size_t dim_;
  std::size_t capacity_;
  std::vector<double> features_;
  std::vector<double> rewards_;
  std::size_t next_ = 0;  // where the next one goes once all places are taken
};

// The last yes/no flags and how many are raised. Not thread-safe for writing.
class FlagWindow {
 public:
  explicit FlagWindow(std::size_t capacity) : capacity_(capacity) {}

  std::size_t size() const { return flags_.size(); }
  std::size_t raised() const { return raised_; }

  void Push(bool flag);
  void Clear();

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::size_t capacity_;
  std::vector<std::uint8_t> flags_;
  std::size_t next_ = 0;
  std::size_t raised_ = 0;
};

// What the paper's window detector and product likelihood need of a period beside its sums.
struct PaperRecord {
  linalg::GaussianPosterior own_regression;  // the user's own, over D alone
  RecentObservations recent;
  FlagWindow badness;
};

// A user's current stationary period: the observations D since the last detected change, and the
// pool model that the user is on. Of D it keeps the sums.
struct Period {
  ModelId model = kNoModel;
  linalg::SufficientStats data;
  Recency recency = {};  // what the period added to its model's
  std::unique_ptr<PaperRecord> paper = {};

  void Observe(std::span<const double> x, double r);
  // Empties D; `model` is left for the caller.
  void Clear();

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);
};

}  // namespace codband
