#include "codband/experiments/partition_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codband/base/check.h"
#include "codband/experiments/or_null.h"
#include "codband/sim/summary.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;

// The regret of each run from the checkpoint `first` on; 0: all of it.
std::vector<double> RegretSince(const sim::PolicyResults& policy, std::size_t first) {
  return sim::Collect(policy.runs, [&](const sim::RunResult& run) {
    return run.total_regret() - (first == 0 ? 0 : run.regret[first - 1]);
  });
}

Json OneCostJson(const Cost& cost) {
  return {{"regret_of_one", cost.alone},
          {"regret", cost.partitioned},
          {"cost", OrNull(cost.share)},
          {"standard_error", OrNull(cost.error)}};
}

std::string Percent(std::optional<double> share, const char* sign) {
  if (!share) return "–";
  return fmt::format("{}{:.1f}%", *share < 0 ? "" : sign, 100 * *share);
}

}  // namespace

Cost CostOf(std::span<const double> alone, std::span<const double> partitioned) {
  CODBAND_CHECK(alone.size() == partitioned.size());
  Cost cost{.alone = sim::Spread(alone).mean, .partitioned = sim::Spread(partitioned).mean};
  if (!(cost.alone > 0)) return cost;
  const double ratio = cost.partitioned / cost.alone;
  cost.share = ratio - 1;
  if (alone.size() == 1) return cost;
  std::vector<double> rest;
  for (std::size_t i = 0; i < alone.size(); ++i) rest.push_back(partitioned[i] - ratio * alone[i]);
  cost.error = sim::Spread(rest).sd / (std::sqrt(static_cast<double>(rest.size())) * cost.alone);
  return cost;
}

PartitionCost CostOfPartitions(std::span<const std::size_t> checkpoint_rounds,
                               const sim::PolicyResults& alone,
                               const sim::PolicyResults& partitioned) {
  const std::size_t rounds = checkpoint_rounds.back();
  const auto tenth = std::ranges::find_if(
      checkpoint_rounds, [&](std::size_t played) { return 10 * played >= rounds; });
  const auto first = static_cast<std::size_t>(tenth - checkpoint_rounds.begin()) + 1;
  return {.in_all = CostOf(RegretSince(alone, 0), RegretSince(partitioned, 0)),
          .after_first_tenth = CostOf(RegretSince(alone, first), RegretSince(partitioned, first))};
}

Json CostJson(const PartitionCost& cost) {
  return {{"in_all", OneCostJson(cost.in_all)},
          {"after_first_tenth", OneCostJson(cost.after_first_tenth)}};
}

report::ReportTable CostTable(const sim::Comparison& alone, const sim::Comparison& partitioned) {
  constexpr report::Align kRight = report::Align::kRight;
  report::ReportTable table({{"policy"},
                             {"of one", kRight},
                             {"in all", kRight},
                             {"±", kRight},
                             {"of one, after the first tenth", kRight},
                             {"after the first tenth", kRight},
                             {"±", kRight}});
  for (std::size_t i = 0; i < alone.policies.size(); ++i) {
    const PartitionCost cost =
        CostOfPartitions(partitioned.checkpoint_rounds, alone.policies[i], partitioned.policies[i]);
    std::vector<std::string> cells = {partitioned.policies[i].spec};
    for (const Cost& part : {cost.in_all, cost.after_first_tenth}) {
      cells.push_back(fmt::format("{:.0f}", part.alone));
      cells.push_back(Percent(part.share, "+"));
      cells.push_back(Percent(part.error, ""));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace codband::experiments
