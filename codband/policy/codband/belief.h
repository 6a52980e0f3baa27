#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// Which model a user is believed to be on now: the likeliest few models with their chances, the
// chance of a taste that no model knows, and what is left over, which is spread over all other
// models in proportion to how likely they are for anybody. A user nobody knows is all left-over.
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
  double rest() const;  // the chance that is left over

  // All on one model.
  void Settle(ModelId model);
  // Nothing is known.
  void Clear() { *this = Belief(); }

  // From the chance of each model of the pool and, last, of a taste that none knows. The chances
  // add up to 1. The likeliest are kept, but for those that do not matter.
  void Assign(const ModelPool& pool, std::span<const double> chances);

  // The chance of each model of the pool into `chances`, the left-over spread by the prior weights
  // (of each model; they need not add up to 1); the last place is for a fresh taste. A model that
  // is gone leaves its chance to the others.
  void Expand(const ModelPool& pool, std::span<const double> prior_weights,
              std::span<double> chances) const;

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::array<ModelId, kEntries> models_{};
  std::array<float, kEntries> chances_{};
  float fresh_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace codband
