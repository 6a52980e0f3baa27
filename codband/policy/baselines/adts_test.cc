#include "codband/policy/baselines/adts.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "codband/policy/streams.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kAdTsDim = 4;

RandomStream TestStream(std::uint64_t event) { return {{.seed = 7, .event = event}, 1000}; }

struct Observation {
  std::vector<double> x;
  double r;
};

Observation Draw(RandomStream& random, std::span<const double> theta, double noise) {
  Observation observation{std::vector<double>(kAdTsDim), noise * random.Normal()};
  random.FillNormal(observation.x);
  for (std::size_t i = 0; i < kAdTsDim; ++i) observation.r += observation.x[i] * theta[i];
  return observation;
}

Decision DecisionFor(UserId user, const Observation& observation, std::uint32_t period = 0) {
  return {.user = user, .features = observation.x, .period = period};
}

// The definition, with dense matrices.
double DenseDistance(std::span<const Observation> before, std::span<const Observation> after,
                     double lambda) {
  const auto fit = [&](std::span<const Observation> data) {
    Eigen::MatrixXd A = lambda * Eigen::MatrixXd::Identity(kAdTsDim, kAdTsDim);
    Eigen::VectorXd b = Eigen::VectorXd::Zero(kAdTsDim);
    for (const Observation& o : data) {
      const Eigen::Map<const Eigen::VectorXd> x(o.x.data(), kAdTsDim);
      A += x * x.transpose();
      b += o.r * x;
    }
    return std::pair(A, Eigen::VectorXd(A.inverse() * b));
  };
  const auto [A1, m1] = fit(before);
  const auto [A2, m2] = fit(after);
  return (m1 - m2).transpose() * (0.5 * (A1 + A2)) * (m1 - m2);
}

linalg::GaussianPosterior FitOf(std::span<const Observation> data) {
  linalg::GaussianPosterior fit(kAdTsDim, 0.7, 1);
  for (const Observation& o : data) fit.Add(o.x, o.r);
  return fit;
}

// Small enough to restart often; changes sides every 250 observations.
constexpr AdTsOptions kSmall{.v = 0.3, .step = 10, .window = 3, .permutations = 200};
constexpr std::array<double, kAdTsDim> kTheta = {0.5, -0.5, 0.5, 0.5};
constexpr std::array<double, kAdTsDim> kOther = {-0.5, 0.5, 0.1, 0.5};

// One user, whose own choices are played; returns the times of detected changes.
std::vector<std::size_t> PlayUser(Policy& policy, UserId user, std::size_t from, std::size_t to) {
  std::vector<std::size_t> changes;
  std::vector<double> arms(5 * kAdTsDim);
  for (std::size_t t = from; t < to; ++t) {
    RandomStream random = TestStream(t);
    random.FillNormal(arms);
    const EventKey key{.seed = 3, .event = t};
    const Decision decision = policy.Choose(user, {arms, kAdTsDim}, key);
    double reward = 0.1 * random.Normal();
    for (std::size_t i = 0; i < kAdTsDim; ++i) {
      reward += decision.features[i] * (t / 250 % 2 == 0 ? kTheta : kOther)[i];
    }
    if (policy.Learn(decision, reward, key).change_detected) changes.push_back(t);
  }
  return changes;
}

TEST(AdTsTest, DistanceEqualsDenseFormula) {
  RandomStream random = TestStream(0);
  std::vector<Observation> data;
  for (int i = 0; i < 40; ++i) data.push_back(Draw(random, i < 25 ? kTheta : kOther, 0.3));
  const std::span<const Observation> all(data);
  const double expected = DenseDistance(all.first(20), all.last(20), 0.7);
  EXPECT_GT(expected, 1);
  EXPECT_NEAR(AdTsDistance(FitOf(all.first(20)), FitOf(all.last(20))), expected, 1e-9);
  EXPECT_NEAR(AdTsDistance(FitOf(all), FitOf(all)), 0, 1e-9);
}

TEST(AdTsTest, CusumRangeOfAStep) {
  // Sums of differences from the mean 3: -2, -4, -6, -4, -2, 0.
  EXPECT_DOUBLE_EQ(CusumRange(std::vector<double>{1, 1, 1, 5, 5, 5}, 3), 6);
  // 2, 0, 2, 0, ...
  EXPECT_DOUBLE_EQ(CusumRange(std::vector<double>{5, 1, 5, 1, 5, 1}, 3), 2);
  EXPECT_DOUBLE_EQ(CusumRange(std::vector<double>{2, 2, 2}, 2), 0);
}

TEST(AdTsTest, CusumDetectsWhatFewPermutationsReach) {
  RandomStream random = TestStream(1);
  // The range of a step is reached by the orders that, closed to a ring, are the same step: 12 of
  // 924 for 6 and 6, 1.3%; 8 of 70 for 4 and 4, 11.4%.
  std::vector<double> twelve = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
  EXPECT_TRUE(CusumDetects(twelve, 1000, 0.95, random));
  std::vector<double> eight = {1, 1, 1, 1, 2, 2, 2, 2};
  EXPECT_FALSE(CusumDetects(eight, 1000, 0.95, random));
  std::ranges::sort(eight);
  EXPECT_TRUE(CusumDetects(eight, 1000, 0.85, random));
  std::vector<double> mixed = {1, 2, 1, 2, 1, 2, 1, 2};
  EXPECT_FALSE(CusumDetects(mixed, 1000, 0.95, random));
  std::vector<double> constant(20, 0.1);
  EXPECT_FALSE(CusumDetects(constant, 1000, 0.95, random));
}

// Returns the number of distances at each restart.
std::vector<std::size_t> CompareWithDirectComputation(const AdTsOptions& options) {
  const auto policy = MakeAdTs(kAdTsDim, options);
  std::vector<std::size_t> lengths;
  std::vector<Observation> data;
  std::vector<double> distances;
  std::uint32_t restarts = 0;
  const std::size_t width = options.step * options.window;
  for (std::size_t t = 0; t < 3000; ++t) {
    RandomStream random = TestStream(t);
    const Observation observation = Draw(random, t / 250 % 2 == 0 ? kTheta : kOther, 0.3);
    const EventKey key{.seed = 3, .event = t};
    const bool detected =
        policy->Learn(DecisionFor(5, observation, restarts), observation.r, key).change_detected;

    data.push_back(observation);
    bool expected = false;
    if (data.size() % options.step == 0 && data.size() >= 2 * width) {
      const auto recent = std::span<const Observation>(data).last(2 * width);
      distances.push_back(DenseDistance(recent.first(width), recent.last(width), 1));
      if (distances.size() > 5) {
        std::vector<double> series = distances;
        RandomStream permutation = StreamFor(key, DrawPurpose::kPermutation);
        expected = CusumDetects(series, options.permutations, options.level, permutation);
      }
    }
    EXPECT_EQ(detected, expected) << "at " << t;
    if (!expected) continue;
    lengths.push_back(distances.size());
    data.clear();
    distances.clear();
    ++restarts;
  }
  return lengths;
}

TEST(AdTsTest, RestartsExactlyWhenTheDirectComputationSays) {
  const auto lengths = CompareWithDirectComputation(kSmall);
  ASSERT_GT(lengths.size(), 5);
  EXPECT_GE(std::ranges::min(lengths), 10) << "fewer distances cannot be significant";
}

TEST(AdTsTest, RestartsExactlyWhenTheDirectComputationSaysAtALowLevel) {
  AdTsOptions options = kSmall;
  options.level = 0.4;
  const auto lengths = CompareWithDirectComputation(options);
  ASSERT_GT(lengths.size(), 5);
  EXPECT_EQ(std::ranges::min(lengths), 6) << "fewer are not judged";
}

TEST(AdTsTest, KeepsABoundedSeries) {
  const auto policy =
      MakeAdTs(kAdTsDim, {.step = 1, .window = 1, .permutations = 100000, .level = 0.99999});
  RandomStream random = TestStream(0);
  std::size_t size_after_300 = 0;
  for (std::size_t t = 0; t < 600; ++t) {
    const Observation observation = Draw(random, std::vector<double>(kAdTsDim), 1);
    ASSERT_FALSE(policy->Learn(DecisionFor(5, observation), observation.r, {3, t}).change_detected);
    if (t == 299) size_after_300 = Saved(*policy).size();
  }
  EXPECT_EQ(Saved(*policy).size(), size_after_300);
}

TEST(AdTsTest, ServesAsNewAfterARestart) {
  const auto policy = MakeAdTs(kAdTsDim, kSmall);
  const std::vector<std::size_t> changes = PlayUser(*policy, 5, 0, 2000);
  ASSERT_FALSE(changes.empty());
  const auto again = MakeAdTs(kAdTsDim, kSmall);
  PlayUser(*again, 5, 0, changes[0] + 1);  // up to and including the first restart
  const auto fresh = MakeAdTs(kAdTsDim, kSmall);
  std::vector<double> arms(5 * kAdTsDim);
  TestStream(99).FillNormal(arms);
  const Decision served = again->Choose(5, {arms, kAdTsDim}, {1, 2});
  const Decision as_new = fresh->Choose(5, {arms, kAdTsDim}, {1, 2});
  EXPECT_EQ(served.period, 1);
  EXPECT_EQ(served.arm, as_new.arm);
  EXPECT_EQ(served.score, as_new.score);
}

TEST(AdTsTest, RewardOfADroppedPeriodTeachesNothing) {
  const auto policy = MakeAdTs(kAdTsDim, kSmall);
  ASSERT_FALSE(PlayUser(*policy, 5, 0, 2000).empty());
  const std::string before = Saved(*policy);
  const Decision late{.user = 5, .features = {1, 2, 3, 4}, .period = 0};
  EXPECT_FALSE(policy->Learn(late, 1, {3, 9999}).change_detected);
  EXPECT_EQ(Saved(*policy), before);
}

TEST(AdTsTest, SaveLoadContinueEqualsAnUninterruptedRun) {
  for (const std::size_t stop : {0, 7, 60, 333, 1234}) {
    const auto policy = MakeAdTs(kAdTsDim, kSmall);
    PlayUser(*policy, 5, 0, stop);
    const std::string saved = Saved(*policy);
    const auto restored = MakeAdTs(kAdTsDim, kSmall);
    ByteReader in(saved);
    restored->LoadState(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    EXPECT_EQ(Saved(*restored), saved);
    EXPECT_EQ(PlayUser(*policy, 5, stop, stop + 800), PlayUser(*restored, 5, stop, stop + 800));
    EXPECT_EQ(Saved(*restored), Saved(*policy));
  }
}

TEST(AdTsTest, DamagedStateIsReported) {
  const auto policy = MakeAdTs(kAdTsDim, kSmall);
  PlayUser(*policy, 5, 0, 145);
  const std::string saved = Saved(*policy);
  for (std::size_t size = 0; size < saved.size(); ++size) {
    ByteReader in(std::string_view(saved).substr(0, size));
    MakeAdTs(kAdTsDim, kSmall)->LoadState(in);
    ASSERT_FALSE(in.ok()) << size;
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(~damaged[i]);
    ByteReader in(damaged);
    MakeAdTs(kAdTsDim, kSmall)->LoadState(in);  // must neither crash nor ask for absurd memory
  }
  // Under other settings the blocks do not fit.
  ByteReader in(saved);
  MakeAdTs(kAdTsDim, {.step = 10, .window = 1})->LoadState(in);
  EXPECT_FALSE(in.ok());
}

TEST(AdTsTest, ForgetEqualsNeverHavingSeenTheUser) {
  const auto policy = MakeAdTs(kAdTsDim, kSmall);
  PlayUser(*policy, 5, 0, 300);
  const std::string without = Saved(*policy);
  PlayUser(*policy, 6, 0, 300);
  EXPECT_EQ(policy->model_count(), 2);
  EXPECT_TRUE(policy->Forget(6));
  EXPECT_FALSE(policy->Forget(6));
  EXPECT_EQ(Saved(*policy), without);
}

}  // namespace
}  // namespace codband
