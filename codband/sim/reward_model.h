#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace codband::sim {

// What an arm brings to a user whom it fits with v = xᵀθ, from -1 to 1 for features and parameters
// of norm 1. Policies are told nothing about the kind.
enum class RewardKind {
  kGaussian,    // v + N(0, noise²)
  kClicks,      // 0 or 1, with chance (1 + v) / 2
  kRareClicks,  // 0 or 1, with chance 0.05 + 0.5 v, cut to [0, 1]
  kCounts,      // Poisson with mean 1 + 2 v, at least 0; never more than 20
  kRatings,     // 3 + 2 (v + N(0, noise²)): neither centred nor bounded
};

// By kind.
inline constexpr std::array<std::string_view, 5> kRewardNames = {
    "gaussian", "clicks", "rare-clicks", "counts", "ratings"};
std::string_view RewardName(RewardKind kind);
std::optional<RewardKind> FindReward(std::string_view name);

// Whether rewards of this kind depend on a noise that can be set.
bool HasNoise(RewardKind kind);

// The luck of one visit, the same for all arms.
struct Luck {
  double normal = 0;   // standard normal
  double uniform = 0;  // in [0, 1)
};

// Draws rewards of one kind. With the same luck an arm that fits better never brings less. A plain
// value, safe from any thread.
class RewardModel {
 public:
  // Precondition: noise > 0. Has no effect unless HasNoise(kind).
  RewardModel(RewardKind kind, double noise) : kind_(kind), noise_(noise) {}

  // The expected reward, in the reward's own unit.
  double Mean(double fit) const;
  double Reward(double fit, const Luck& luck) const;

  // The standard deviation of the reward of an arm with fit 0.
  double deviation() const;

 private:
  RewardKind kind_;
  double noise_;
};

}  // namespace codband::sim
