#pragma once

#include <map>
#include <span>
#include <unordered_map>

#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/pool_register.h"
#include "codband/policy/codband/user_record.h"

namespace codband {

// What users have brought to all that is shared, added up from their records: what a partition of
// these users alone would publish (pool_register.h), as far as records tell. Not in them: how many
// rewards were 1, what users who were forgotten or changed long ago leave behind in the evidence on
// changes, and the credits of the model prior.
class RecordSums {
 public:
  // `dim`: of the models, intercept included.
  RecordSums(std::size_t dim, bool intercept)
      : dim_(dim), past_(linalg::SufficientStats::OfColumns(intercept)) {}

  // Precondition: each of the user's showings of items counts (ItemEffects::Counts).
  void Add(const UserRecord& user);
  // Of all records since the last call.
  PoolSums Take();

 private:
  ModelSums& Of(ModelId model);
  void AddItems(const ItemHistory& history);

  std::size_t dim_;
  linalg::SufficientStats past_;  // scratch
  std::map<ModelId, ModelSums> models_;
  std::unordered_map<ItemId, ItemSums> items_;
  HyperEvidence evidence_;
};

// Adds to `to` what there is in `all`, but not in `parts` together: what users whose records a
// repair has dropped have left behind. Nothing where counts agree. All are in the order of ids.
void AddRest(const PoolSums& all, std::span<const PoolSums> parts, PoolSums& to);

}  // namespace codband
