// Visitors without an id (kNobody).
#include <gtest/gtest.h>

#include <cmath>

#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kDim = TestWorld::kDim;

// A visit of somebody who has the parameter of `taste`.
double Serve(const TestWorld& world, Policy& policy, UserId user, std::size_t taste,
             std::uint64_t event) {
  RandomStream random({77, event}, 810);
  std::vector<double> arms(TestWorld::kArms * kDim);
  random.FillNormal(arms);
  const Decision decision = policy.Choose(user, {arms, kDim}, {77, event});
  const double mean = linalg::Dot(decision.features, world.parameter(taste));
  policy.Learn(decision, mean + 0.1 * random.Normal(), {77, event});
  return mean;
}

TEST(NobodyTest, VisitorsWithoutAnIdAreLearnedFromAndNeverChange) {
  const TestWorld world(5);
  const auto policy = MakeOrDie("codband", world.context());
  double late = 0;
  for (std::uint64_t event = 0; event < 3000; ++event) {
    // Two of three have the first taste: the best arm for the average of all.
    const std::size_t taste = event % 3 == 0 ? 1 : 0;
    const double mean = Serve(world, *policy, kNobody, taste, event);
    if (event >= 1500) late += mean / 1500;
  }
  EXPECT_EQ(policy->model_count(), 1U);
  EXPECT_EQ(policy->DescribeModels()[0].observations, 3000U);
  // The arm that is best for the average taste brings this, on average over seven normal arms.
  double norm = 0;
  for (std::size_t i = 0; i < kDim; ++i) {
    const double average = (2 * world.parameter(0)[i] + world.parameter(1)[i]) / 3;
    norm += average * average;
  }
  EXPECT_NEAR(late, 1.35 * std::sqrt(norm), 0.15 * std::sqrt(norm));
  EXPECT_TRUE(policy->Forget(kNobody));
  EXPECT_EQ(policy->model_count(), 0U);
}

TEST(NobodyTest, FewVisitsAreRankedByThePoolAndUsersKeepTheirOwn) {
  const TestWorld world(6);
  const auto with = MakeOrDie("codband", world.context());
  const auto without = MakeOrDie("codband", world.context());
  std::uint64_t event = 0;
  for (int round = 0; round < 60; ++round) {
    for (UserId user = 0; user < 9; ++user, ++event) {
      Serve(world, *with, user, user % 3, event);
      Serve(world, *without, user, user % 3, event);
    }
  }
  // Of a visitor nobody knows the pool says the same with an id and without.
  RandomStream random({78, 0}, 811);
  std::vector<double> arms(TestWorld::kArms * kDim);
  random.FillNormal(arms);
  Ranking nobody;
  Ranking stranger;
  with->Rank(kNobody, {arms, kDim}, {1, 1}, 0, nobody);
  with->Rank(12345, {arms, kDim}, {1, 1}, 0, stranger);
  for (std::size_t i = 0; i < TestWorld::kArms; ++i) {
    EXPECT_EQ(nobody.arms[i].mean, stranger.arms[i].mean);
  }
  Serve(world, *with, kNobody, 0, event++);
  with->Rank(kNobody, {arms, kDim}, {1, 1}, 0, nobody);
  for (std::size_t i = 0; i < TestWorld::kArms; ++i) {
    EXPECT_NEAR(nobody.arms[i].mean, stranger.arms[i].mean, 1);  // hardly moved
  }
  // What strangers bring does not get into the models of users.
  for (int i = 0; i < 300; ++i, ++event) Serve(world, *with, kNobody, event % 3, event);
  for (UserId user = 0; user < 9; ++user) {
    const Decision a = with->Choose(user, {arms, kDim}, {1, 2});
    const Decision b = without->Choose(user, {arms, kDim}, {1, 2});
    EXPECT_NEAR(a.mean, b.mean, 0.1) << user;
    EXPECT_EQ(a.period, 0U);
  }
  const auto restored = DecodeState(EncodeState(*with), world.context());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(EncodeState(*restored.value()), EncodeState(*with));
}

TEST(NobodyTest, EveryPolicyServesThem) {
  const TestWorld world(7);
  for (const std::string& spec : RegisteredSpecs()) {
    const auto policy = MakeOrDie(spec, world.context());
    if (spec.starts_with("oracle")) continue;  // knows users by their number
    for (std::uint64_t event = 0; event < 100; ++event) {
      Serve(world, *policy, kNobody, 0, event);
      Serve(world, *policy, event % 3, event % 3, 1000 + event);
    }
    const auto restored = DecodeState(EncodeState(*policy), world.context());
    ASSERT_TRUE(restored.ok()) << spec << restored.status().ToString();
    EXPECT_EQ(EncodeState(*restored.value()), EncodeState(*policy)) << spec;
    if (spec == "random") continue;
    EXPECT_TRUE(policy->Forget(kNobody)) << spec;
    EXPECT_FALSE(policy->Forget(kNobody)) << spec;
  }
}

}  // namespace
}  // namespace codband
