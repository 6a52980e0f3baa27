#pragma once

// Visits for the tests of policies that cluster users: three kinds of users, who come in one by
// one.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/policy.h"

namespace codband {

inline constexpr std::size_t kDim = 4;
inline constexpr std::size_t kArms = 5;

struct Visit {
  UserId user;
  std::vector<double> arms = std::vector<double>(kArms * kDim);
  double noise;
};

// A random user, some more often than others; later ones come in only after a while.
inline Visit VisitAt(std::size_t t, std::size_t users) {
  RandomStream random({.seed = 22, .event = t}, 1000);
  const std::size_t present = std::min(users, users / 2 + t / 40);
  Visit visit{.user = std::min(random.Below(present), random.Below(present)), .noise = 0};
  random.FillNormal(visit.arms);
  visit.noise = 0.2 * random.Normal();
  return visit;
}

inline double Reward(const Decision& decision, double noise) {
  const std::size_t kind = decision.user % 3;
  return decision.features[kind] - 0.5 * decision.features[kind + 1] + noise;
}

// Plays the policy's own choices.
inline std::vector<Decision> Play(Policy& policy, std::size_t users, std::size_t from,
                                  std::size_t to) {
  std::vector<Decision> decisions;
  for (std::size_t t = from; t < to; ++t) {
    const Visit visit = VisitAt(t, users);
    decisions.push_back(policy.Choose(visit.user, {visit.arms, kDim}, {1, t}));
    policy.Learn(decisions.back(), Reward(decisions.back(), visit.noise), {1, t});
  }
  return decisions;
}

}  // namespace codband
