#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/policy.h"

namespace codband {

// What one user has given to models shared with others: the ledger that lets Forget take it out
// again. One entry for each model, however many observations or periods went into it.
// Not thread-safe for writing.
class Contributions {
 public:
  struct Entry {
    ModelId model;
    std::uint64_t periods;  // how many of the user's periods ended on this model
    linalg::SufficientStats stats;
  };

  explicit Contributions(std::size_t dim) : dim_(dim) {}

  std::span<const Entry> entries() const { return entries_; }

  // One observation given to `model`. Allocates only for a model not seen before.
  void Add(ModelId model, std::span<const double> x, double r);

  // A whole period, closed while the user was on `model`.
  void AddPeriod(ModelId model, const linalg::SufficientStats& period);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  Entry& EntryFor(ModelId model);

  std::size_t dim_;
  std::vector<Entry> entries_;
};

}  // namespace codband
