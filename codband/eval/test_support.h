#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "codband/base/check.h"
#include "codband/base/random.h"
#include "codband/eval/logged_decisions.h"

namespace codband::eval {

// What the tests of off-policy evaluation need. For tests only.

// A bandit without context: the log chooses action b with probability p[b]; its reward is 1 with
// probability mean[b], else 0 (or always mean[b] if `exact`). Features are the unit vectors.
struct SmallBandit {
  std::vector<double> p;
  std::vector<double> mean;
  bool exact = false;
  bool all_probabilities = true;

  LoggedDecisions EmptyLog() const {
    LoggedDecisions log(p.size());
    for (std::size_t b = 0; b < p.size(); ++b) {
      log.action_names.Add("a" + std::to_string(b));
    }
    return log;
  }

  void Append(LoggedDecisions& log, std::size_t chosen, double reward, UserId user = 0) const {
    std::vector<std::uint32_t> actions(p.size());
    std::iota(actions.begin(), actions.end(), 0);
    std::vector<double> features(p.size() * p.size());
    for (std::size_t b = 0; b < p.size(); ++b) features[b * p.size() + b] = 1;
    const Status status = log.Add({.user = user,
                                   .time_ms = static_cast<std::int64_t>(log.size()),
                                   .chosen = static_cast<std::uint32_t>(chosen),
                                   .propensity = p[chosen],
                                   .reward = reward},
                                  {.actions = actions,
                                   .features = features,
                                   .probabilities = all_probabilities ? std::span<const double>(p)
                                                                      : std::span<const double>()});
    CODBAND_CHECK(status.ok());
  }

  LoggedDecisions Log(std::size_t events, std::uint64_t seed) const {
    LoggedDecisions log = EmptyLog();
    for (std::size_t i = 0; i < events; ++i) {
      RandomStream random({.seed = seed, .event = i}, 7);
      const std::size_t chosen = random.Categorical(p);
      const double reward = exact ? mean[chosen] : random.Uniform() < mean[chosen] ? 1 : 0;
      Append(log, chosen, reward);
    }
    return log;
  }

  double Value(std::span<const double> chances) const {
    return std::inner_product(chances.begin(), chances.end(), mean.begin(), 0.0);
  }
};

}  // namespace codband::eval
