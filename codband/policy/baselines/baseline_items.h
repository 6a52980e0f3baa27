#pragma once

#include <cstdint>
#include <vector>

#include "codband/policy/item_effects.h"
#include "codband/policy/params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/user_table.h"

namespace codband {

// The memory that ItemScores refer to, so that choosing need not allocate. A choice takes that of
// its thread and passes it down; what refers to it does not outlive that choice.
struct ItemScratch {
  std::vector<std::uint32_t> slots;
  std::vector<double> means;
  std::vector<double> variances;
  std::vector<double> scores;

  static ItemScratch& OfThisThread() {
    thread_local ItemScratch scratch;
    return scratch;
  }
};

// The effects of items (item_effects.h) beside the linear models of a baseline, so that it is not
// beaten for want of them: items=yes. One effect for each item, for all users. The model learns
// from what the item's effect leaves of a reward. Const functions may run concurrently.
class BaselineItems {
 public:
  explicit BaselineItems(bool on) : on_(on) {}

  // What to add to the scores of arms, in `scratch`.
  ItemScores ScoresOf(ArmsView arms, ItemScratch& scratch) const;

  // Learns from a reward whose expectation by the features alone is `expected`. Returns
  // what is left of it for the model to learn.
  double Learn(const Decision& decision, double expected, double reward);

  void Forget(UserId user);
  bool ForgetItem(ItemId item) { return effects_.ForgetItem(item); }
  std::optional<ItemDescription> Describe(ItemId item) const { return effects_.Describe(item); }

  // No bytes where it is off.
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  bool on_;
  ItemEffects effects_{false};
  UserTable<ItemHistory> users_;
};

// items=no|yes.
ParamInfo ItemsParam();

}  // namespace codband
