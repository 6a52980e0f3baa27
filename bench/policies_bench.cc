// One step (choose among ten arms, then learn) of every policy, at d = 25, with 100 users who have
// one of ten parameters and do not change: K = 10 models once the pool is stable. And the same of
// codband by the number of models, with two users for each of them, and where arms are
// items with ids, without effects of their own and with them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "codband/policy/registry.h"
#include "codband/sim/synthetic.h"

namespace codband {
namespace {

constexpr std::size_t kUsers = 100;
constexpr std::size_t kModels = 10;
constexpr double kNoise = 0.1;
constexpr std::size_t kRounds = 60;  // of visits made beforehand, played over and over
constexpr std::size_t kWarmUp = 120;

struct World {
  std::unique_ptr<sim::Environment> environment;
  std::vector<sim::Visit> visits;
};

// `item_effects`: the variance of the effects of items; without a value arms have no ids.
World MakeWorld(std::size_t users, std::size_t models, std::optional<double> item_effects) {
  const sim::SyntheticOptions options{.users = users,
                                      .models = models,
                                      .rounds = kRounds,
                                      .period_min = 100'000,
                                      .period_max = 100'000,
                                      .item_effects = item_effects};
  World world{std::move(sim::MakeSynthetic(options, 1)).value(), {}};
  for (std::size_t round = 0; round < kRounds; ++round) {
    world.environment->StartRound(round);
    for (UserId user = 0; user < users; ++user) {
      world.environment->MakeVisit(user, world.visits.emplace_back());
    }
  }
  return world;
}

void Step(benchmark::State& state, const std::string& spec, std::size_t users, std::size_t models,
          std::optional<double> item_effects = {}) {
  const World world = MakeWorld(users, models, item_effects);
  const auto policy = std::move(MakePolicy(spec, {.dim = world.environment->dim(),
                                                  .noise = kNoise,
                                                  .truth = world.environment.get()}))
                          .value();
  Decision decision;
  std::uint64_t event = 0;
  const auto step = [&] {
    const sim::Visit& visit = world.visits[event % world.visits.size()];
    const EventKey key{1, event++};
    policy->Choose(visit.user, {visit.arms, world.environment->dim(), visit.items}, key, decision);
    // Fresh noise: the same noise over and over would look like a taste of its own.
    const double noise = kNoise * RandomStream(key, 900).Normal();
    policy->Learn(decision, visit.means[decision.arm] + noise, key);
  };
  for (std::size_t i = 0; i < kWarmUp * users; ++i) step();
  for (auto _ : state) step();
  state.counters["models"] = static_cast<double>(policy->model_count());
}

void RegisterAll() {
  for (const std::string& spec : RegisteredSpecs()) {
    benchmark::RegisterBenchmark(("Step/" + spec).c_str(), [spec](benchmark::State& state) {
      Step(state, spec, kUsers, kModels);
    });
  }
  for (const std::size_t models : {10, 50, 200}) {
    benchmark::RegisterBenchmark(
        fmt::format("Models/codband/{}", models).c_str(),
        [models](benchmark::State& state) { Step(state, "codband", 2 * models, models); });
  }
  const auto add = [](const char* name, std::optional<double> item_effects) {
    benchmark::RegisterBenchmark(name, [item_effects](benchmark::State& state) {
      Step(state, "codband", kUsers, kModels, item_effects);
    });
  };
  add("Items/codband/no-ids", std::nullopt);
  add("Items/codband/ids-alone", 0.0);
  add("Items/codband/effects", 0.004);
}

}  // namespace
}  // namespace codband

int main(int argc, char** argv) {
  codband::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
