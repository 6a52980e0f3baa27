#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/period.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/model_aliases.h"
#include "codband/policy/policy.h"

namespace codband {

// What a user gave to the pool before the last change, so that it can be taken out again: closed
// periods by number, with the model that each ended on, and the sufficient statistics of their
// observations over the columns that occur, one entry for each model. Sums are kept in single
// precision; callers round before they store and correct the pool, so that both agree exactly. Not
// thread-safe for writing.
class PastPeriods {
 public:
  struct Entry {
    ModelId model;
    linalg::CompactStats data;
    std::unique_ptr<Recency> recency = {};  // what they added to their model's; none: nothing

    const Recency& recency_mass() const { return RecencyMass(recency.get()); }
  };

  // The number of the current period: how many were closed.
  std::uint32_t closed_count() const {
    return forgotten_ + static_cast<std::uint32_t>(models_.size());
  }
  // The models of the closed periods that are remembered, oldest first.
  std::span<const ModelId> models() const { return models_; }
  std::span<const Entry> entries() const { return entries_; }
  std::uint64_t PeriodsOn(ModelId model) const;

  // The model of a closed period; kNoModel if it is no longer remembered.
  ModelId ModelOf(std::uint32_t period) const;

  // A period was closed on `model`.
  void Close(ModelId model) { models_.push_back(model); }
  // Forgets the oldest period. Precondition: there is one.
  void DropOldest();

  // The sums for a model; empty ones if it has none.
  void Read(ModelId model, linalg::SufficientStats& out) const;
  // Precondition: data was rounded.
  void Store(ModelId model, const linalg::SufficientStats& data);
  // What the observations on a model added to its recency. Preconditions: the entry exists.
  const Recency& RecencyOf(ModelId model) const;
  void AddRecency(ModelId model, const RecencyClock& clock, const Recency& recency);
  void Erase(ModelId model);

  // Models go by other names, closed periods too. Sums of those that are one by now are added, and
  // rounded anew.
  void Rename(const ModelAliases& aliases, bool intercept);

  std::size_t HeapBytes() const;

  void Save(ByteWriter& out) const;
  // `intercept`: the last feature of a vector is one.
  void Load(ByteReader& in, const RecordLayout& layout, bool intercept);

 private:
  Entry& EntryOf(ModelId model);

  std::uint32_t forgotten_ = 0;
  std::vector<ModelId> models_;
  std::vector<Entry> entries_;
};

}  // namespace codband
