#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/recency.h"
#include "codband/policy/policy.h"

namespace codband {

// What a user gave to the pool before the last change, so that it can be taken out again: closed
// periods by number, with the model that each ended on, and the sufficient statistics of their
// observations, one entry for each model. Sums are kept in single precision; callers round before
// they store and correct the pool, so that both agree exactly. Not thread-safe for writing.
class PastPeriods {
 public:
  struct Entry {
    ModelId model;
    linalg::CompactStats data;
    Recency recency = {};
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
  Recency& RecencyOf(ModelId model);  // precondition: the entry exists
  void Erase(ModelId model);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in, std::size_t dim);

 private:
  std::uint32_t forgotten_ = 0;
  std::vector<ModelId> models_;
  std::vector<Entry> entries_;
};

}  // namespace codband
