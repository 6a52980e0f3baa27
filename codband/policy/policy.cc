#include "codband/policy/policy.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {
namespace {

[[noreturn]] void Reject(std::string_view function, const std::string& problem) {
  throw std::invalid_argument(fmt::format("[Policy::{}] {}", function, problem));
}

constexpr std::string_view kExpected = "expected a number within ±1e15";

std::size_t FirstOutside(std::span<const double> values) {
  std::size_t i = 0;
  while (i < values.size() && std::abs(values[i]) <= kLargestNumber) ++i;
  return i;
}

}  // namespace

Policy::Policy(std::size_t dim) : dim_(dim) { CODBAND_CHECK(dim > 0 && dim <= kMaxFeatures); }

void Policy::Choose(UserId user, ArmsView arms, EventKey key, Decision& decision) const {
  if (arms.dim != dim_) {
    Reject("Choose", fmt::format("arms have {} features, expected {}", arms.dim, dim_));
  }
  if (arms.features.empty()) Reject("Choose", "arms: none given, expected at least 1");
  if (arms.features.size() % dim_ != 0) {
    Reject("Choose", fmt::format("arms hold {} numbers, expected a multiple of {}",
                                 arms.features.size(), dim_));
  }
  if (!AllWithin(arms.features, kLargestNumber)) {
    const std::size_t i = FirstOutside(arms.features);
    Reject("Choose", fmt::format("feature {} of arm {} is {}, {}", i % dim_, i / dim_,
                                 arms.features[i], kExpected));
  }
  decision.user = user;
  decision.arm = 0;
  decision.model = kNoModel;
  decision.period = 0;
  decision.mean = decision.width = decision.score = 0;
  decision.propensity = 1;
  DoChoose(user, arms, key, decision);
  const std::span<const double> chosen = arms.arm(decision.arm);
  decision.features.assign(chosen.begin(), chosen.end());
}

Decision Policy::Choose(UserId user, ArmsView arms, EventKey key) const {
  Decision decision;
  Choose(user, arms, key, decision);
  return decision;
}

LearnOutcome Policy::Learn(const Decision& decision, double reward, EventKey key) {
  if (decision.features.size() != dim_) {
    Reject("Learn", fmt::format("the decision has {} features, expected {}",
                                decision.features.size(), dim_));
  }
  if (!AllWithin(decision.features, kLargestNumber)) {
    const std::size_t i = FirstOutside(decision.features);
    Reject("Learn",
           fmt::format("feature {} of the decision is {}, {}", i, decision.features[i], kExpected));
  }
  if (!(std::abs(reward) <= kLargestNumber)) {
    Reject("Learn", fmt::format("reward is {}, {}", reward, kExpected));
  }
  return DoLearn(decision, reward, key);
}

}  // namespace codband
