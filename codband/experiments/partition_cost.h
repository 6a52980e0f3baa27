#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>

#include "codband/report/table.h"
#include "codband/sim/runner.h"

namespace codband::experiments {

// What spreading a population over partitions costs: regret beside that of one partition, seed by
// seed on the same rounds.
struct Cost {
  double alone = 0;        // mean regret of one partition
  double partitioned = 0;  // and of several
  // The ratio of the two less 1, with the standard error of a ratio of paired means; none where it
  // is not known: a ratio to nothing, the error of a single seed.
  std::optional<double> share = {};
  std::optional<double> error = {};
};

// Preconditions: as many values of each, at least one.
Cost CostOf(std::span<const double> alone, std::span<const double> partitioned);

struct PartitionCost {
  Cost in_all;
  Cost after_first_tenth;  // of the rounds: from the first checkpoint at or beyond it on
};

// Of one policy. Preconditions: the runs are on the same seeds and have these checkpoints.
PartitionCost CostOfPartitions(std::span<const std::size_t> checkpoint_rounds,
                               const sim::PolicyResults& alone,
                               const sim::PolicyResults& partitioned);

nlohmann::ordered_json CostJson(const PartitionCost& cost);

// A row for each policy. Precondition: both have the same policies, seeds and checkpoints.
report::ReportTable CostTable(const sim::Comparison& alone, const sim::Comparison& partitioned);

}  // namespace codband::experiments
