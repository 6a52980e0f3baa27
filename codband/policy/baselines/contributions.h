#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/policy.h"

namespace codband {

// What one user contributed to models shared with others: the ledger that lets Forget subtract it
// again. One entry for each model, however many observations went into it.
// Not thread-safe for writing.
class Contributions {
 public:
  struct Entry {
    ModelId model;
    linalg::SufficientStats stats;
  };

  explicit Contributions(std::size_t dim) : dim_(dim) {}

  std::span<const Entry> entries() const { return entries_; }

  // One observation that `model` learned. Allocates only for a model not seen before.
  void Add(ModelId model, std::span<const double> x, double r);

  // As SufficientStats::Grow.
  void Grow(std::size_t dim);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  Entry& EntryFor(ModelId model);

  std::size_t dim_;
  std::vector<Entry> entries_;
};

}  // namespace codband
