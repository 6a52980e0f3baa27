#include "codband/policy/policy.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

[[noreturn]] void Reject(std::string_view function, const std::string& problem) {
  throw std::invalid_argument(fmt::format("[Policy::{}] {}", function, problem));
}

constexpr std::string_view kExpected = "expected a number within ±1e15";

// A state that begins with this tells its number of features next. No state before format 5 does:
// they begin with a count, or with a positive number.
constexpr std::uint64_t kDimFollows = 0xffff'c0db'ffff'c0db;

// How often a random choice is repeated to estimate the probability of each arm.
constexpr std::size_t kRepeats = 64;

std::size_t FirstOutside(std::span<const double> values) {
  std::size_t i = 0;
  while (i < values.size() && std::abs(values[i]) <= kLargestNumber) ++i;
  return i;
}

void CheckArms(std::string_view function, std::size_t dim, ArmsView arms) {
  if (arms.dim != dim) {
    Reject(function, fmt::format("arms have {} features, expected {}", arms.dim, dim));
  }
  if (arms.features.empty()) Reject(function, "arms: none given, expected at least 1");
  if (arms.features.size() % dim != 0) {
    Reject(function, fmt::format("arms hold {} numbers, expected a multiple of {}",
                                 arms.features.size(), dim));
  }
  if (!arms.items.empty() && arms.items.size() != arms.count()) {
    Reject(function, fmt::format("{} arms have {} items, expected {} or none", arms.count(),
                                 arms.items.size(), arms.count()));
  }
  if (!linalg::AllWithin(arms.features, kLargestNumber)) {
    const std::size_t i = FirstOutside(arms.features);
    Reject(function, fmt::format("feature {} of arm {} is {}, {}", i % dim, i / dim,
                                 arms.features[i], kExpected));
  }
}

void Reset(UserId user, Decision& decision) {
  decision.user = user;
  decision.arm = 0;
  decision.item = kNoItem;
  decision.model = kNoModel;
  decision.period = 0;
  decision.mean = decision.width = decision.score = 0;
  decision.propensity = std::numeric_limits<double>::quiet_NaN();
}

void TakeArm(ArmsView arms, Decision& decision) {
  const std::span<const double> chosen = arms.arm(decision.arm);
  decision.item = arms.item(decision.arm);
  decision.features.assign(chosen.begin(), chosen.end());
}

}  // namespace

Policy::Policy(std::size_t dim) : dim_(dim) { CODBAND_CHECK(dim > 0 && dim <= kMaxFeatures); }

void Policy::Choose(UserId user, ArmsView arms, EventKey key, Decision& decision) const {
  CheckArms("Choose", dim_, arms);
  Reset(user, decision);
  const Propensity propensity = DoChoose(user, arms, key, decision);
  decision.propensity = propensity.OfChosen(decision.arm, arms.count());
  TakeArm(arms, decision);
}

Decision Policy::Choose(UserId user, ArmsView arms, EventKey key) const {
  Decision decision;
  Choose(user, arms, key, decision);
  return decision;
}

void Policy::Rank(UserId user, ArmsView arms, EventKey key, double floor, Ranking& ranking) const {
  CheckArms("Rank", dim_, arms);
  if (!(floor >= 0 && floor <= 1)) {
    Reject("Rank", fmt::format("floor is {}, expected a number from 0 to 1", floor));
  }
  Decision& decision = ranking.decision;
  Reset(user, decision);
  ranking.arms.assign(arms.count(), {});
  ranking.theta.clear();
  ranking.intercept = 0;
  ranking.draws = 0;
  DoRank(user, arms, key, ranking);

  const double uniform = floor / static_cast<double>(arms.count());
  for (Ranking::Arm& arm : ranking.arms) arm.probability = uniform + (1 - floor) * arm.probability;
  if (floor > 0) {
    RandomStream random = StreamFor(key, DrawPurpose::kFloor);
    if (random.Uniform() < floor) {
      decision.arm = static_cast<std::uint32_t>(random.Below(arms.count()));
    }
  }
  const Ranking::Arm& chosen = ranking.arms[decision.arm];
  decision.mean = chosen.mean;
  decision.width = chosen.width;
  decision.score = chosen.score;
  decision.propensity = chosen.probability;
  TakeArm(arms, decision);
}

void Policy::DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const {
  Decision& decision = ranking.decision;
  Decision alone;
  // With one key, Thompson sampling draws the same parameter for every arm.
  const auto score_arms = [&](EventKey draw) {
    for (std::size_t i = 0; i < arms.count(); ++i) {
      Reset(user, alone);
      static_cast<void>(DoChoose(user, arms.only(i), draw, alone));
      ranking.arms[i] = {.mean = alone.mean, .width = alone.width, .score = alone.score};
    }
  };
  const Propensity propensity = DoChoose(user, arms, key, decision);
  if (propensity.knows_every_arm()) {
    score_arms(key);
    for (std::size_t i = 0; i < arms.count(); ++i) {
      ranking.arms[i].probability = propensity.OfArm(i, decision.arm, arms.count());
    }
    return;
  }
  RandomStream random = StreamFor(key, DrawPurpose::kRepeat);
  std::vector<double> wins(arms.count());
  const std::size_t taken = random.Below(kRepeats);
  EventKey taken_key = key;
  for (std::size_t i = 0; i < kRepeats; ++i) {
    const EventKey draw{.seed = key.seed, .event = random()};
    Reset(user, alone);
    static_cast<void>(DoChoose(user, arms, draw, alone));
    wins[alone.arm] += 1.0 / kRepeats;
    if (i == taken) {
      decision = alone;
      taken_key = draw;
    }
  }
  score_arms(taken_key);
  for (std::size_t i = 0; i < arms.count(); ++i) ranking.arms[i].probability = wins[i];
  ranking.draws = kRepeats;
}

LearnOutcome Policy::Learn(const Decision& decision, double reward, EventKey key, LearnMemo* memo) {
  if (decision.features.size() > dim_) {
    Reject("Learn", fmt::format("the decision has {} features, expected at most {}",
                                decision.features.size(), dim_));
  }
  if (!linalg::AllWithin(decision.features, kLargestNumber)) {
    const std::size_t i = FirstOutside(decision.features);
    Reject("Learn",
           fmt::format("feature {} of the decision is {}, {}", i, decision.features[i], kExpected));
  }
  if (!(std::abs(reward) <= kLargestNumber)) {
    Reject("Learn", fmt::format("reward is {}, {}", reward, kExpected));
  }
  if (decision.features.size() == dim_) return DoLearn(decision, reward, key, memo);
  padded_ = decision;
  padded_.features.resize(dim_);
  return DoLearn(padded_, reward, key, memo);
}

void Policy::Grow(std::size_t dim) {
  if (dim < dim_ || dim > kMaxFeatures) {
    Reject("Grow", fmt::format("dim is {}, expected {} to {}", dim, dim_, kMaxFeatures));
  }
  if (dim == dim_) return;
  DoGrow(dim);
  dim_ = dim;
}

void Policy::SaveDim(ByteWriter& out) const {
  out.U64(kDimFollows);
  out.U64(dim_);
}

bool Policy::LoadDim(ByteReader& in) {
  if (!in.Skip(kDimFollows)) return false;
  const std::uint64_t dim = in.U64("number of features");
  if (!in.ok()) return true;
  if (dim < dim_ || dim > kMaxFeatures) {
    in.Fail("number of features", fmt::format("is {}, expected {} to {}", dim, dim_, kMaxFeatures));
  } else {
    Grow(dim);
  }
  return true;
}

void Policy::SaveState(ByteWriter& out) const {
  SaveDim(out);
  DoSaveState(out);
}

void Policy::LoadState(ByteReader& in) {
  static_cast<void>(LoadDim(in));
  if (in.ok()) DoLoadState(in);
}

}  // namespace codband
