#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace codband::sim {

// The distribution of the reward of an arm with features x for a user with parameter θ, given the
// fit v = xᵀθ, which is from -1 to 1 for vectors of norm 1. Policies are not told the kind.
enum class RewardKind {
  kGaussian,    // v + N(0, noise²)
  kClicks,      // Bernoulli with probability (1 + v) / 2
  kRareClicks,  // Bernoulli with probability 0.05 + 0.5 v, clipped to [0, 1]
  kCounts,      // Poisson with mean max(0, 1 + 2 v), truncated at 20
  kRatings,     // 3 + 2 (v + N(0, noise²)): neither centred nor bounded
};

// By kind.
inline constexpr std::array<std::string_view, 5> kRewardNames = {
    "gaussian", "clicks", "rare-clicks", "counts", "ratings"};
std::string_view RewardName(RewardKind kind);

// Whether rewards of this kind have a noise parameter.
bool HasNoise(RewardKind kind);

// The random draws of one visit, shared by all arms.
struct Luck {
  double normal = 0;   // standard normal
  double uniform = 0;  // in [0, 1)
};

// Rewards of one kind. With the same luck the reward does not decrease in the fit. A plain value,
// safe from any thread.
class RewardModel {
 public:
  // Preconditions: noise > 0, which has no effect unless HasNoise(kind); a click rate between 0 and
  // 1, which has none unless the kind is kClicks: then the chance of fit v is 1 + 4 v times it.
  RewardModel(RewardKind kind, double noise, std::optional<double> click_rate = {})
      : kind_(kind), noise_(noise), click_rate_(click_rate) {}

  // The expected reward, in the reward's own unit.
  double Mean(double fit) const;
  double Reward(double fit, const Luck& luck) const;

  // The standard deviation of the reward of an arm with fit 0.
  double deviation() const;

 private:
  RewardKind kind_;
  double noise_;
  std::optional<double> click_rate_;
};

}  // namespace codband::sim
