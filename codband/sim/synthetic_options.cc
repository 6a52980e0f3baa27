#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "codband/policy/shared_pool.h"
#include "codband/sim/synthetic.h"

namespace codband::sim {
namespace {

// Range of SyntheticOptions::separation: random unit vectors around a common direction lie √2 times
// as far from each other as from it, and the latter must be less than 1.
constexpr double kLeastSeparation = 0.01;
constexpr double kMostSeparation = 1.4;

// Limits of memory: the arms of one visit, and the numbers of one round or of the pool (8 GB).
constexpr std::size_t kMostArms = 10'000;
constexpr std::size_t kMostNumbers = 1'000'000'000;

}  // namespace

SyntheticOptions SyntheticOptions::Paper(Setting setting) {
  SyntheticOptions options{.setting = setting};
  if (setting == Setting::kStationary) {
    options.users = 500;
    options.rounds = 600;
    options.models = 2;
  }
  return options;
}

Status SyntheticOptions::Validate() const {
  CODBAND_RETURN_IF_ERROR(ValidateSizes());
  CODBAND_RETURN_IF_ERROR(ValidateRewards());
  return ValidateCombinations();
}

Status SyntheticOptions::ValidateSizes() const {
  const auto in_range = [](std::string_view field, std::size_t value, std::size_t min,
                           std::size_t max) -> Status {
    if (value >= min && value <= max) return {};
    return Status::InvalidArgument(
        fmt::format("{} = {}, expected a whole number from {} to {}", field, value, min, max));
  };
  CODBAND_RETURN_IF_ERROR(in_range("users", users, 1, 10'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("models", models, 1, 100'000));
  CODBAND_RETURN_IF_ERROR(in_range("rounds", rounds, 1, 1'000'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("dim", dim, 1, kMaxFeatures));
  CODBAND_RETURN_IF_ERROR(in_range("pool", pool, 1, 10'000'000));
  if (arms < 1 || arms > pool || arms > kMostArms) {
    return Status::InvalidArgument(fmt::format("arms = {}, expected a whole number from 1 to {}{}",
                                               arms, std::min(pool, kMostArms),
                                               pool < kMostArms ? " (the pool of arms)" : ""));
  }
  if (users * arms * dim > kMostNumbers || pool * dim > kMostNumbers) {
    return Status::InvalidArgument(
        fmt::format("users × arms × dim = {} and pool × dim = {}, expected at most {} numbers each",
                    users * arms * dim, pool * dim, kMostNumbers));
  }
  if (period_min < 1 || period_min > period_max) {
    return Status::InvalidArgument(
        fmt::format("period = {}:{}, expected MIN:MAX with 1 ≤ MIN ≤ MAX", period_min, period_max));
  }
  CODBAND_RETURN_IF_ERROR(in_range("period MAX", period_max, 1, 1'000'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("item-life", item_life, 0, 1'000'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("contexts", contexts, 0, 100));
  return in_range("partitions", partitions, 1, SharedPool::kMostPartitions);
}

Status SyntheticOptions::ValidateRewards() const {
  if (!(noise >= 1e-6 && noise <= 1e6)) {
    return Status::InvalidArgument(
        fmt::format("noise = {}, expected a number from 1e-06 to 1e+06", noise));
  }
  if (separation && !(*separation >= kLeastSeparation && *separation <= kMostSeparation)) {
    return Status::InvalidArgument(fmt::format("separation = {}, expected a number from {} to {}",
                                               *separation, kLeastSeparation, kMostSeparation));
  }
  const auto check_variance = [](std::string_view field,
                                 const std::optional<double>& value) -> Status {
    if (!value || (*value >= 0 && *value <= 100)) return {};
    return Status::InvalidArgument(
        fmt::format("{} = {}, expected a number from 0 to 100", field, *value));
  };
  CODBAND_RETURN_IF_ERROR(check_variance("item-effects", item_effects));
  CODBAND_RETURN_IF_ERROR(check_variance("group-item-effects", group_item_effects));
  CODBAND_RETURN_IF_ERROR(check_variance("individual", individual));
  if (click_rate && (rewards != RewardKind::kClicks || !(*click_rate > 0 && *click_rate < 1))) {
    return Status::InvalidArgument(
        fmt::format("click-rate = {} of {}, expected a number between 0 and 1, of clicks",
                    *click_rate, RewardName(rewards)));
  }
  return {};
}

Status SyntheticOptions::ValidateCombinations() const {
  if (publish_min_ms < 1 || publish_min_ms > publish_max_ms) {
    return Status::InvalidArgument(fmt::format(
        "publish = {}:{}, expected MIN:MAX with 1 ≤ MIN ≤ MAX", publish_min_ms, publish_max_ms));
  }
  if (dim % (1 + contexts) != 0) {
    return Status::InvalidArgument(fmt::format(
        "dim = {}, expected a multiple of {}, one more than contexts", dim, 1 + contexts));
  }
  if (features == FeatureKind::kOneHot && dim / (1 + contexts) < 4) {
    return Status::InvalidArgument(fmt::format(
        "dim = {}, expected at least 4 for each context and 4 more, for one-hot features", dim));
  }
  if (drift && setting == Setting::kStationary) {
    return Status::InvalidArgument(
        "drift = true with setting = 3, expected setting 1, 2 or 4: in setting 3 no user changes");
  }
  if (dim == 1 && (drift || separation || setting == Setting::kNovel)) {
    return Status::InvalidArgument(fmt::format(
        "dim = 1, expected a whole number from 2 to {} for drift, separation or setting 4",
        kMaxFeatures));
  }
  return {};
}

}  // namespace codband::sim
