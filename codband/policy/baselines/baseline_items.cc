#include "codband/policy/baselines/baseline_items.h"

namespace codband {

ItemScores BaselineItems::ScoresOf(ArmsView arms, ItemScratch& scratch) const {
  if (!on_ || arms.items.empty()) return {};
  auto& [slots, means, variances, scores] = scratch;
  for (std::vector<double>* each : {&means, &variances, &scores}) each->resize(arms.count());
  effects_.Rate(arms.items, {}, nullptr, static_cast<double>(effects_.showings()), slots,
                {.means = means, .variances = variances, .scores = scores});
  return {.means = means, .scores = scores};
}

double BaselineItems::Learn(const Decision& decision, double expected, double reward) {
  if (!on_ || decision.item == kNoItem) return reward;
  const ItemEffects::Effect effect = effects_.Of(decision.item, {});
  ItemHistory& user = users_.FindOrMake(decision.user, [] { return ItemHistory(); });
  effects_.Observe(user, decision.item, kNoModel, reward - expected, reward, effect);
  return reward - effect.mean;
}

void BaselineItems::Forget(UserId user) {
  const ItemHistory* history = users_.Find(user);
  if (history == nullptr) return;
  effects_.Forget(*history);
  users_.Erase(user);
}

void BaselineItems::Save(ByteWriter& out) const {
  if (!on_) return;
  effects_.Save(out);
  users_.Save(out);
}

void BaselineItems::Load(ByteReader& in) {
  if (!on_) return;
  effects_.Load(in);
  users_.Load(in, [] { return ItemHistory(); });
  if (!in.ok()) return;
  ItemEffects::Tally tally(effects_);
  users_.ForEach([&](UserId, const ItemHistory& user) { tally.Add(user); });
  if (const std::string fault = tally.Fault(); !fault.empty()) in.Fail("items", fault);
}

ParamInfo ItemsParam() {
  return {.name = "items",
          .help = "whether an item has an effect of its own beside its features",
          .words = {"no", "yes"}};
}

}  // namespace codband
