#include "codband/experiments/paper_experiments.h"

#include <fmt/format.h>

namespace codband::experiments {
namespace {

// The paper's table: accumulated regret with 100 users and 3000 rounds.
struct TableRow {
  std::size_t models;
  std::size_t period_min;
  std::size_t period_max;
  double noise;
  double oracle_linucb;
  double linucb;
  double adts;
  double dlinucb;
  double club;
  double sclub;
  double codband;
};

constexpr TableRow kTable[] = {
    {10, 500, 3000, 0.10, 124, 24050, 9183, 3030, 24602, 24602, 1193},
    {50, 500, 3000, 0.10, 575, 24352, 19433, 2858, 24762, 24980, 2252},
    {100, 500, 3000, 0.10, 922, 28108, 20828, 3388, 28424, 28585, 2688},
    {10, 200, 500, 0.10, 128, 54791, 52282, 17475, 55098, 55268, 5143},
    {10, 500, 800, 0.10, 131, 51095, 40538, 8401, 51440, 51604, 2423},
    {10, 800, 1100, 0.10, 128, 39035, 26851, 6549, 39395, 39477, 2342},
    {10, 500, 3000, 0.13, 175, 27101, 20555, 3742, 27163, 27633, 3043},
    {10, 500, 3000, 0.16, 280, 23949, 21320, 4833, 23693, 24436, 3629},
};

// Two fifths of the users, a third of the rounds, periods a third as long.
void MakeQuick(PaperExperiment& experiment) {
  sim::SyntheticOptions& environment = experiment.environment;
  environment.users = environment.users * 2 / 5;
  environment.rounds /= 3;
  environment.period_min /= 3;
  environment.period_max /= 3;
  experiment.published.clear();  // they are of the full size
}

std::string Describe(const sim::SyntheticOptions& environment) {
  switch (environment.setting) {
    case sim::Setting::kDirichletProcess:
      return "users move to popular or new tastes (Dirichlet process)";
    case sim::Setting::kFixedSet:
      return fmt::format("K = {}, periods {}–{}, σ = {}", environment.models,
                         environment.period_min, environment.period_max, environment.noise);
    case sim::Setting::kNovel:
      return "users move to new tastes that no user had before";
    case sim::Setting::kStationary:
      break;
  }
  return "users never change";
}

}  // namespace

std::vector<PaperExperiment> PaperExperiments(bool quick) {
  std::vector<PaperExperiment> experiments;
  for (const TableRow& row : kTable) {
    PaperExperiment experiment{.name = fmt::format("row{}", experiments.size() + 1),
                               .environment = {.models = row.models,
                                               .period_min = row.period_min,
                                               .period_max = row.period_max,
                                               .noise = row.noise},
                               .published = {{"oracle-linucb", row.oracle_linucb},
                                             {"linucb", row.linucb},
                                             {"adts", row.adts},
                                             {"dlinucb", row.dlinucb},
                                             {"club", row.club},
                                             {"sclub", row.sclub},
                                             {"codband:paper", row.codband},
                                             {"codband:paper-product", row.codband}}};
    experiments.push_back(std::move(experiment));
  }
  experiments.push_back(
      {.name = "setting1",
       .environment = sim::SyntheticOptions::Paper(sim::Setting::kDirichletProcess),
       .published = {}});
  experiments.push_back({.name = "setting3",
                         .environment = sim::SyntheticOptions::Paper(sim::Setting::kStationary),
                         .published = {}});
  for (PaperExperiment& experiment : experiments) {
    if (quick) MakeQuick(experiment);
    experiment.title = Describe(experiment.environment);
  }
  return experiments;
}

std::vector<std::string> PaperPolicies() {
  return {"oracle-linucb", "linucb",        "adts",          "dlinucb",
          "club",          "sclub",         "codband:paper", "codband:paper-product",
          "codband",       "oracle-greedy", "oracle-filter"};
}

std::string WithPaperSettings(const std::string& policy, const PaperExperiment& experiment) {
  if (experiment.environment.setting != sim::Setting::kDirichletProcess) return policy;
  if (policy == "linucb") return "linucb:alpha=0.3";
  if (policy == "adts") return "adts:v=1";
  if (policy == "club") return "club:alpha=0.1,alpha2=2";
  return policy;
}

}  // namespace codband::experiments
