#include "codband/experiments/stress_cells.h"

#include <fmt/format.h>

namespace codband::experiments {
namespace {

constexpr sim::SyntheticOptions kBase{
    .users = 50, .models = 10, .rounds = 1500, .period_min = 300, .period_max = 1000};

// Two fifths of the users, a third of the rounds, periods a third as long.
void MakeQuick(sim::SyntheticOptions& environment) {
  environment.users = environment.users * 2 / 5;
  environment.rounds /= 3;
  environment.period_min /= 3;
  environment.period_max /= 3;
}

// Fills the placeholders of the text with numbers of the population.
std::string FillIn(const char* text, const sim::SyntheticOptions& environment) {
  return fmt::format(fmt::runtime(text), fmt::arg("users", environment.users),
                     fmt::arg("rounds", environment.rounds),
                     fmt::arg("min", environment.period_min),
                     fmt::arg("max", environment.period_max));
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
  return cells;
}

}  // namespace codband::experiments
