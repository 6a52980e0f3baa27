#include "codband/sim/reward_model.h"

#include <algorithm>
#include <cmath>

namespace codband::sim {
namespace {

// A count beyond this has a chance below 1e-11 at the largest mean, 3.
constexpr int kMostCount = 20;

constexpr double kClickSlope = 4;  // with a click rate
constexpr double kRatingMiddle = 3;
constexpr double kRatingScale = 2;

// The smallest k with P(count ≤ k) > uniform.
int PoissonQuantile(double mean, double uniform) {
  double chance = std::exp(-mean);
  double below = chance;
  int count = 0;
  while (below <= uniform && count < kMostCount) {
    ++count;
    chance *= mean / count;
    below += chance;
  }
  return count;
}

}  // namespace

std::string_view RewardName(RewardKind kind) {
  return kRewardNames[static_cast<std::size_t>(kind)];
}

bool HasNoise(RewardKind kind) {
  return kind == RewardKind::kGaussian || kind == RewardKind::kRatings;
}

double RewardModel::Mean(double fit) const {
  switch (kind_) {
    case RewardKind::kGaussian:
      return fit;
    case RewardKind::kClicks:
      return std::clamp(click_rate_ ? *click_rate_ * (1 + kClickSlope * fit) : (1 + fit) / 2, 0.0,
                        1.0);
    case RewardKind::kRareClicks:
      return std::clamp(0.05 + 0.5 * fit, 0.0, 1.0);
    case RewardKind::kCounts:
      return std::max(0.0, 1 + 2 * fit);
    case RewardKind::kRatings:
      break;
  }
  return kRatingMiddle + kRatingScale * fit;
}

double RewardModel::Reward(double fit, const Luck& luck) const {
  switch (kind_) {
    case RewardKind::kGaussian:
      return Mean(fit) + noise_ * luck.normal;
    case RewardKind::kClicks:
    case RewardKind::kRareClicks:
      return luck.uniform < Mean(fit) ? 1 : 0;
    case RewardKind::kCounts:
      return PoissonQuantile(Mean(fit), luck.uniform);
    case RewardKind::kRatings:
      break;
  }
  return Mean(fit) + kRatingScale * noise_ * luck.normal;
}

double RewardModel::deviation() const {
  const double mean = Mean(0);
  switch (kind_) {
    case RewardKind::kGaussian:
      return noise_;
    case RewardKind::kClicks:
    case RewardKind::kRareClicks:
      return std::sqrt(mean * (1 - mean));
    case RewardKind::kCounts:
      return std::sqrt(mean);
    case RewardKind::kRatings:
      break;
  }
  return kRatingScale * noise_;
}

}  // namespace codband::sim
