#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codband/linalg/sufficient_stats.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/user_record.h"
#include "codband/policy/item_effects.h"

namespace codband {

// Keeps users' periods and the pool in step: whatever is in a record, current or past, is in the
// model that it names, and n_k counts it. All moves of whole periods go through here. Owns scratch
// memory; not thread-safe.
class PeriodLedger {
 public:
  // `history`: how many closed periods of a user are remembered; 0: all. `intercept`: the last
  // feature of a vector is one. The pool and the items outlive this.
  PeriodLedger(ModelPool& pool, ItemEffects& items, std::size_t history, bool intercept);

  // The user's next period begins, on `model`: n_z += 1. Precondition: the user has no period.
  void Start(UserRecord& user, ModelId model);

  // Takes out what the items of the user's last showings have learned from this user: they were
  // shown to somebody who had left their group already.
  void TakeOutItems(UserRecord& user, std::size_t showings);

  // The user's period moves with all its observations to another model, which exists; the old one
  // is dropped if it has no other period. O(d³).
  void Move(UserRecord& user, ModelId to);

  // Names another model as that of the user's current period, whose observations the caller has
  // moved.
  void Rename(UserRecord& user, ModelId model);

  // Closes the user's period (D = ∅): its observations stay with their model, and n_k goes on
  // counting it. The oldest closed period beyond `history` leaves the pool.
  void Close(UserRecord& user);

  // A reward for a period that has been closed in the meantime: for the model of that period.
  // Returns false, and drops the reward, if the period has been discarded.
  bool ObserveLate(UserRecord& user, std::uint32_t period, std::span<const double> x, double r);

  // Takes all that the user brought out of the pool. The record is to be erased.
  void Forget(const UserRecord& user);

 private:
  void ForgetOldest(UserRecord& user);
  void StoreRounded(UserRecord& user, ModelId model);

  ModelPool& pool_;
  ItemEffects& items_;
  std::size_t history_;
  linalg::SufficientStats sums_;
  linalg::SufficientStats rounded_;
};

}  // namespace codband
