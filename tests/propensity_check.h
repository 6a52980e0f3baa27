#pragma once

// Compares the propensities that a policy reports with the frequencies of its choices over fresh
// event keys, in one state, for one user and one set of arms.
//
// Each comparison is a Chernoff test: n independent choices, each of them `arm` with a probability
// of p on average, contradict p if a share q as far from p has probability below kFalseAlarm,
//   2 exp(-n KL(q ‖ p)) < kFalseAlarm     (Hoeffding 1963, Theorem 1: valid for every n and p).
// A claim of 0 or 1 is contradicted by a single choice. The suite makes fewer than five million
// comparisons, so under another seed it would raise a false alarm with probability < 0.001.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "codband/policy/policy.h"

namespace codband {

inline constexpr double kFalseAlarm = 1e-10;

// KL(q ‖ p) of two coins.
inline double CoinDivergence(double q, double p) {
  const auto term = [](double a, double b) { return a == 0 ? 0 : a * std::log(a / b); };
  return term(q, p) + term(1 - q, 1 - p);
}

// Whether a share q of `trials` contradicts probability p.
inline bool Contradicts(double q, double p, double trials) {
  return trials * CoinDivergence(q, std::min(p, 1.0)) > std::log(2 / kFalseAlarm);
}

// What was reported about an arm, and how often it was chosen.
struct ArmTally {
  double trials = 0;
  double chosen = 0;
  double said = 0;  // sum of the reported probabilities

  bool IsContradicted() const {
    return trials > 0 && Contradicts(chosen / trials, said / trials, trials);
  }
  std::string Text() const {
    return fmt::format("chosen {} times of {}, reported probability {:.4f}", chosen, trials,
                       said / trials);
  }
};

// What is wrong with the propensities of Choose; empty if nothing. Choices without a closed form
// (NaN) are not judged.
inline std::string WrongChoosePropensity(const Policy& policy, UserId user, ArmsView arms,
                                         std::uint64_t seed) {
  constexpr std::uint64_t kTrials = 3000;
  std::vector<std::optional<double>> said(arms.count());
  std::vector<double> chosen(arms.count());
  Decision decision;
  for (std::uint64_t event = 0; event < kTrials; ++event) {
    policy.Choose(user, arms, {seed, event}, decision);
    chosen[decision.arm] += 1;
    if (std::isnan(decision.propensity)) continue;
    const double before = said[decision.arm].value_or(decision.propensity);
    if (before != decision.propensity) {
      return fmt::format("Choose: arm {} has propensity {} at one key and {} at another",
                         decision.arm, before, decision.propensity);
    }
    said[decision.arm] = decision.propensity;
  }
  for (std::size_t arm = 0; arm < arms.count(); ++arm) {
    if (!said[arm]) continue;
    const ArmTally tally{.trials = kTrials,
                         .chosen = chosen[arm],
                         .said = *said[arm] * static_cast<double>(kTrials)};
    if (tally.IsContradicted()) return fmt::format("Choose: arm {}: {}", arm, tally.Text());
  }
  return {};
}

// The same for Rank. Probabilities in closed form (Ranking::draws is 0) are the same at every key:
// one that follows the choice would call every choice certain. Those estimated from draws may
// depend on the key, but no more than so many draws explain. Both must be calibrated: among the
// keys at which an arm has about the same probability, it is chosen about as often.
inline std::string WrongRankProbability(const Policy& policy, UserId user, ArmsView arms,
                                        std::uint64_t seed, double floor) {
  constexpr std::uint64_t kTrials = 800;
  constexpr std::size_t kBands = 5;  // of probabilities between 0 and 1; 0 and 1 are apart
  const auto band = [](double p) {
    if (p <= 0) return std::size_t{0};
    if (p >= 1) return kBands + 1;
    return 1 + static_cast<std::size_t>(p * kBands);
  };
  std::vector<std::array<ArmTally, kBands + 2>> tallies(arms.count());
  std::vector<std::vector<double>> said(arms.count());  // by arm and key
  Ranking ranking;
  for (std::uint64_t event = 0; event < kTrials; ++event) {
    policy.Rank(user, arms, {seed, event}, floor, ranking);
    double sum = 0;
    for (std::size_t arm = 0; arm < arms.count(); ++arm) {
      const double p = ranking.arms[arm].probability;
      sum += p;
      said[arm].push_back(p);
      ArmTally& tally = tallies[arm][band(p)];
      tally.trials += 1;
      tally.said += p;
      tally.chosen += ranking.decision.arm == arm ? 1 : 0;
    }
    if (!(std::abs(sum - 1) < 1e-9)) {
      return fmt::format("Rank: the probabilities at key {} add up to {}", event, sum);
    }
  }
  for (std::size_t arm = 0; arm < arms.count(); ++arm) {
    const double mean = std::accumulate(said[arm].begin(), said[arm].end(), 0.0) / kTrials;
    for (const double p : said[arm]) {
      const bool differs = ranking.draws == 0
                               ? p != said[arm].front()
                               : Contradicts(p, mean, static_cast<double>(ranking.draws));
      if (!differs) continue;
      return fmt::format(
          "Rank with floor {}: arm {} has probability {:.4f} at one key, {:.4f} on "
          "average, from {} draws",
          floor, arm, p, mean, ranking.draws);
    }
    for (const ArmTally& tally : tallies[arm]) {
      if (tally.IsContradicted()) {
        return fmt::format("Rank with floor {}: arm {}: {}", floor, arm, tally.Text());
      }
    }
  }
  return {};
}

}  // namespace codband
