#include "codband/experiments/stress_cells.h"

#include <fmt/format.h>

namespace codband::experiments {
namespace {

constexpr sim::SyntheticOptions kBase{
    .users = 50, .models = 10, .rounds = 1500, .period_min = 300, .period_max = 1000};

constexpr std::size_t kFewRounds = 20;

// Two fifths of the users, a third of the rounds unless they are few, periods a third as long.
void MakeQuick(sim::SyntheticOptions& environment) {
  environment.users = environment.users * 2 / 5;
  environment.item_life /= 3;
  if (environment.rounds <= kFewRounds) return;  // what counts is that they are few
  environment.rounds /= 3;
  environment.period_min /= 3;
  environment.period_max /= 3;
}

// Fills the placeholders of the text with numbers of the population.
std::string FillIn(const char* text, const sim::SyntheticOptions& environment) {
  return fmt::format(
      fmt::runtime(text), fmt::arg("users", environment.users),
      fmt::arg("rounds", environment.rounds), fmt::arg("min", environment.period_min),
      fmt::arg("max", environment.period_max), fmt::arg("life", environment.item_life));
}

}  // namespace

std::vector<StressCell> StressCells(bool quick) {
  std::vector<StressCell> cells;
  const auto add = [&](const char* name, const char* changed, auto change) {
    sim::SyntheticOptions environment = kBase;
    change(environment);
    if (quick) MakeQuick(environment);
    cells.push_back(
        {.name = name, .changed = FillIn(changed, environment), .environment = environment});
  };
  using Options = sim::SyntheticOptions;
  add("base", "nothing", [](Options&) {});
  add("d5", "5 features", [](Options& o) { o.dim = 5; });
  add("d10", "10 features", [](Options& o) { o.dim = 10; });
  add("d64", "64 features", [](Options& o) { o.dim = 64; });
  add("k2", "2 tastes", [](Options& o) { o.models = 2; });
  add("k50", "50 tastes", [](Options& o) { o.models = 50; });
  add("users10", "{users} users", [](Options& o) { o.users = 10; });
  add("users300", "{users} users, {rounds} rounds", [](Options& o) {
    o.users = 300;
    o.rounds = 600;  // else it would cost as much as six others
  });
  add("noise0.03", "noise 0.03", [](Options& o) { o.noise = 0.03; });
  add("noise0.2", "noise 0.2", [](Options& o) { o.noise = 0.2; });
  add("noise0.4", "noise 0.4", [](Options& o) { o.noise = 0.4; });
  add("close", "tastes about 0.4 apart", [](Options& o) { o.separation = 0.4; });
  add("random-order", "users come in random order",
      [](Options& o) { o.order = sim::VisitOrder::kRandom; });
  add("drift", "users drift from taste to taste", [](Options& o) { o.drift = true; });
  add("novel", "always to a new taste", [](Options& o) { o.setting = sim::Setting::kNovel; });
  add("clicks", "0/1, chance (1 + v) / 2",
      [](Options& o) { o.rewards = sim::RewardKind::kClicks; });
  add("rare-clicks", "0/1, chance 0.05 + 0.5 v",
      [](Options& o) { o.rewards = sim::RewardKind::kRareClicks; });
  add("counts", "Poisson, mean 1 + 2 v", [](Options& o) { o.rewards = sim::RewardKind::kCounts; });
  add("ratings", "3 + 2 (v + noise)", [](Options& o) { o.rewards = sim::RewardKind::kRatings; });
  add("fixed-arms", "the same 10 arms at every visit", [](Options& o) { o.pool = o.arms; });
  add("item-effects", "items have effects, a tenth of the rewards' variance",
      [](Options& o) { o.item_effects = 0.004; });
  add("strong-items", "items have effects, as large as the rewards' variance",
      [](Options& o) { o.item_effects = 0.04; });
  add("favourites", "each taste has its own favourites among 300 items", [](Options& o) {
    o.pool = 300;
    o.group_item_effects = 0.01;
  });
  add("ten-items", "the same 10 items at every visit, with effects", [](Options& o) {
    o.pool = o.arms;
    o.item_effects = 0.004;
  });
  add("many-items", "10,000 items with effects", [](Options& o) {
    o.pool = 10'000;
    o.item_effects = 0.004;
  });
  add("ids-alone", "items without effects", [](Options& o) { o.item_effects = 0; });
  add("still", "no user changes", [](Options& o) { o.setting = sim::Setting::kStationary; });
  add("fast", "changes every {min} to {max} rounds", [](Options& o) {
    o.period_min = 60;
    o.period_max = 150;
  });
  // The world of a product.
  const auto fix_catalogue = [](Options& o, std::size_t items) {
    o.pool = items;
    o.arms = items;
    o.dim = 24;
    o.features = sim::FeatureKind::kOneHot;
    o.item_effects = 0;
  };
  add("catalogue10", "always the same 10 items, one-hot features",
      [&](Options& o) { fix_catalogue(o, 10); });
  add("catalogue40", "always the same 40 items, one-hot features",
      [&](Options& o) { fix_catalogue(o, 40); });
  add("catalogue300", "always the same 300 items, one-hot features, {rounds} rounds",
      [&](Options& o) {
        fix_catalogue(o, 300);
        o.rounds = 450;
      });
  add("alike", "300 items with effects that look like one of ten", [](Options& o) {
    o.pool = 300;
    o.features = sim::FeatureKind::kAlike;
    o.item_effects = 0.01;
  });
  add("padded", "a fifth of the features, zeros else",
      [](Options& o) { o.features = sim::FeatureKind::kPadded; });
  add("one-hot", "one-hot features, 40 columns", [](Options& o) {
    o.features = sim::FeatureKind::kOneHot;
    o.dim = 40;
  });
  const auto sell = [&](Options& o, double rate) {
    fix_catalogue(o, 40);
    o.item_effects = 0.01;
    o.rewards = sim::RewardKind::kClicks;
    o.click_rate = rate;
  };
  add("shop0.3", "40 items with effects, clicks around 0.3", [&](Options& o) { sell(o, 0.3); });
  add("shop0.05", "40 items with effects, clicks around 0.05", [&](Options& o) { sell(o, 0.05); });
  add("shop0.01", "40 items with effects, clicks around 0.01", [&](Options& o) { sell(o, 0.01); });
  add("few-visits", "{users} users with about {rounds} visits each, no changes", [](Options& o) {
    o.setting = sim::Setting::kStationary;
    o.users = 3000;
    o.rounds = 12;
    o.order = sim::VisitOrder::kRandom;
  });
  add("zipf", "the i-th user comes 1/i times as often",
      [](Options& o) { o.order = sim::VisitOrder::kZipf; });
  add("individual", "users of a taste are 0.3 apart", [](Options& o) { o.individual = 0.1; });
  add("turnover", "40 items with effects, each for {life} rounds", [](Options& o) {
    o.pool = 40;
    o.item_effects = 0.01;
    o.item_life = 150;
  });
  add("context", "tastes are others in each of two contexts", [](Options& o) {
    o.contexts = 2;
    o.dim = 30;
  });
  add("d256", "256 one-hot features, {users} users, {rounds} rounds", [](Options& o) {
    o.features = sim::FeatureKind::kOneHot;
    o.dim = 256;
    o.users = 25;
    o.rounds = 300;
  });
  return cells;
}

}  // namespace codband::experiments
