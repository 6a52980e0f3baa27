#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/model_aliases.h"

namespace codband {

// The posterior over the model a user is on now, truncated: the likeliest few models with their
// chances, the chance of a fresh parameter that no model knows, and the rest, which is spread over
// all other models in proportion to their prior. A new user is all rest.
//
// A plain value of fixed size: beliefs never allocate, and a user costs the same however many
// models there are.
class Belief {
 public:
  static constexpr std::size_t kEntries = 16;

  // Likeliest first.
  std::size_t size() const { return count_; }
  ModelId model(std::size_t i) const { return models_[i]; }
  double chance(std::size_t i) const { return chances_[i]; }
  double fresh() const { return fresh_; }
  double rest() const;  // the chance of all other models

  // All on one model.
  void Settle(ModelId model);
  // Resets to the prior.
  void Clear() { *this = Belief(); }

  // From the chance of each model of the pool and, last, of a fresh parameter; they add up to 1.
  // The likeliest are kept, but for negligible ones.
  void Assign(const ModelPool& pool, std::span<const double> chances);

  // The chance of each model of the pool into `chances`, the rest spread by the prior weights (of
  // each model; they need not add up to 1); the last place is for a fresh parameter. A model that
  // has been dropped leaves its chance to the others.
  void Expand(const ModelPool& pool, std::span<const double> prior_weights,
              std::span<double> chances) const;

  // Models go by other names; those that are one have the chances of both.
  void Translate(const ModelAliases& aliases);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::array<ModelId, kEntries> models_{};
  std::array<float, kEntries> chances_{};
  float fresh_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace codband
