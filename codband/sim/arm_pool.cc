#include "codband/sim/arm_pool.h"

#include <algorithm>
#include <cmath>

#include "codband/linalg/kernels.h"

namespace codband::sim {
namespace {

constexpr std::size_t kFields = 4;
constexpr std::size_t kPadding = 5;
constexpr std::size_t kPrototypes = 10;

}  // namespace

void Normalise(std::span<double> v) {
  const double norm = std::sqrt(linalg::Dot(v, v));
  for (double& value : v) value /= norm;
}

ArmPool::ArmPool(const Options& options, std::uint64_t seed, std::uint64_t purpose)
    : options_(options), seed_(seed), purpose_(purpose), features_(options.size * options.dim) {
  RandomStream random = Stream(0);
  if (options_.kind == FeatureKind::kAlike) {
    std::vector<double> prototypes(kPrototypes * options_.dim);
    for (std::size_t i = 0; i < kPrototypes; ++i) {
      const std::span<double> prototype =
          std::span(prototypes).subspan(i * options_.dim, options_.dim);
      random.FillNormal(prototype);
      Normalise(prototype);
    }
    prototypes_ = std::move(prototypes);
  }
  for (std::size_t place = 0; place < options_.size; ++place) {
    Draw(random, std::span(features_).subspan(place * options_.dim, options_.dim));
  }
}

std::size_t ArmPool::Generation(std::size_t place, std::size_t round) const {
  if (options_.life == 0) return 0;
  // Places take turns, so that some arms are new in every round.
  return (round + place * options_.life / options_.size) / options_.life;
}

void ArmPool::StartRound(std::size_t round) {
  const std::size_t before = round_;
  round_ = round;
  if (options_.life == 0) return;
  for (std::size_t place = 0; place < options_.size; ++place) {
    if (Generation(place, round) == Generation(place, before)) continue;
    RandomStream random = Stream(number(place));
    Draw(random, std::span(features_).subspan(place * options_.dim, options_.dim));
  }
}

void ArmPool::Draw(RandomStream& random, std::span<double> arm) const {
  const std::size_t d = options_.dim;
  switch (options_.kind) {
    case FeatureKind::kGaussian:
      for (std::size_t i = 0; i < d; ++i) {
        arm[i] = std::sqrt(static_cast<double>(d - i) / static_cast<double>(d)) * random.Normal();
      }
      break;
    case FeatureKind::kOneHot:
      std::ranges::fill(arm, 0.0);
      for (std::size_t field = 0; field < kFields; ++field) {
        const std::size_t first = field * d / kFields;
        arm[first + random.Below((field + 1) * d / kFields - first)] = 1;
      }
      break;
    case FeatureKind::kPadded:
      std::ranges::fill(arm, 0.0);
      random.FillNormal(arm.first((d + kPadding - 1) / kPadding));
      break;
    case FeatureKind::kAlike:
      std::ranges::copy(std::span(prototypes_).subspan(random.Below(kPrototypes) * d, d),
                        arm.begin());
      return;
  }
  Normalise(arm);
}

}  // namespace codband::sim
