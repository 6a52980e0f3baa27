#include "codband/policy/baselines/linucb.h"

#include <gtest/gtest.h>

#include "codband/linalg/test_support.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// Which arm LinUCB should take, from the formula and all observations of the user.
std::size_t DenseUpperBoundArm(std::span<const linalg::Observation> history, double alpha,
                               double lambda, ArmsView arms) {
  linalg::DenseModel dense(arms.dim, lambda);
  dense.Add(history, 1);
  std::size_t best = 0;
  double best_score = -1e300;
  for (std::size_t i = 0; i < arms.count(); ++i) {
    const Eigen::VectorXd x = linalg::ToEigen(arms.arm(i));
    const double score = x.dot(dense.mean()) + alpha * std::sqrt(x.dot(dense.covariance() * x));
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

TEST(LinUcbTest, EveryChoiceIsThatOfTheBatchRidgeSolution) {
  TestWorld world(3);
  const auto policy = MakeLinUcb(TestWorld::kDim, {.alpha = 0.6, .lambda = 0.1});
  std::vector<std::vector<linalg::Observation>> history(TestWorld::kUsers);
  for (int step = 0; step < 300; ++step) {
    const UserId user = world.step() % TestWorld::kUsers;
    const std::vector<double> arms = world.Arms();
    const ArmsView view{arms, TestWorld::kDim};
    const Decision decision = policy->Choose(user, view, {0, world.step()});
    ASSERT_EQ(decision.arm, DenseUpperBoundArm(history[user], 0.6, 0.1, view)) << step;
    EXPECT_EQ(decision.model, user);
    EXPECT_EQ(decision.propensity, 1);
    const double reward = world.Reward(decision);
    history[user].emplace_back(decision.features, reward);
    policy->Learn(decision, reward, {0, world.step()});
    world.set_step(world.step() + 1);
  }
}

TEST(LinUcbTest, WithoutExplorationTheMeanDecides) {
  const auto policy = MakeLinUcb(2, {.alpha = 0, .lambda = 1});
  const std::vector<double> arms = {1, 0, 0, 1};
  Decision second;
  second.features = {0, 1};
  policy->Learn(second, 1, {});
  EXPECT_EQ(policy->Choose(0, {arms, 2}, {}).arm, 1U);
  EXPECT_DOUBLE_EQ(policy->Choose(0, {arms, 2}, {}).mean, 0.5);
  EXPECT_EQ(policy->Choose(1, {arms, 2}, {}).mean, 0);  // another user learned nothing
}

TEST(UniformLinUcbTest, EverybodyLearnsFromEverybody) {
  const auto uniform = MakeOrDie("uniform-linucb:alpha=0", {.dim = 2});
  Decision second;
  second.user = 7;
  second.model = 0;
  second.features = {0, 1};
  uniform->Learn(second, 1, {});
  EXPECT_EQ(uniform->Choose(8, {std::vector<double>{1, 0, 0, 1}, 2}, {}).arm, 1U);
  EXPECT_EQ(uniform->model_count(), 1U);
}

TEST(OracleGreedyTest, UsersOfOneParameterShareAndOthersDoNot) {
  TestWorld world(1);
  const auto oracle = MakeOrDie("oracle-greedy", world.context());
  const std::vector<double> arms = world.Arms();
  const Decision of_user_0 = oracle->Choose(0, {arms, TestWorld::kDim}, {});
  oracle->Learn(of_user_0, 1, {});
  EXPECT_EQ(oracle->Choose(3, {arms, TestWorld::kDim}, {}).model, of_user_0.model);
  EXPECT_NE(oracle->Choose(3, {arms, TestWorld::kDim}, {}).mean, 0);
  EXPECT_EQ(oracle->Choose(1, {arms, TestWorld::kDim}, {}).mean, 0);
}

TEST(OracleFilterTest, ChancesFollowBayesRule) {
  // Two parameters e1 and e2, hazard h, one reward r on arm x = e1:
  // odds of e1 to e2 = N(r | 1, σ²) / N(r | 0, σ²), the prior being even.
  class TwoParameters final : public GroundTruth {
   public:
    std::size_t model_count() const override { return 2; }
    std::span<const double> parameter(std::size_t k) const override { return parameters_[k]; }
    std::size_t model_of(UserId) const override { return 0; }
    double hazard() const override { return 0.1; }

   private:
    std::vector<std::vector<double>> parameters_ = {{1, 0}, {0, 1}};
  } truth;
  const auto filter = MakeOrDie("oracle-filter:sigma=0.5", {.dim = 2, .truth = &truth});
  Decision decision;
  decision.features = {1, 0};
  filter->Learn(decision, 0.7, {});
  const auto odds = [](double r) { return std::exp((2 * r - 1) / (2 * 0.25)); };
  double chance = odds(0.7) / (1 + odds(0.7));
  const std::vector<double> first_arm = {1, 0};
  EXPECT_NEAR(filter->Choose(0, {first_arm, 2}, {}).mean, chance, 1e-12);
  filter->Learn(decision, 0.2, {});
  const double moved = 0.9 * chance + 0.1 * (1 - chance);
  chance = moved * odds(0.2) / (moved * odds(0.2) + 1 - moved);
  EXPECT_NEAR(filter->Choose(0, {first_arm, 2}, {}).mean, chance, 1e-12);
}

}  // namespace
}  // namespace codband
