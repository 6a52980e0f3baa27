#include "codband/sim/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "codband/linalg/kernels.h"

namespace codband {
namespace {

std::unique_ptr<Environment> Make(const SyntheticOptions& options, std::uint64_t seed = 1) {
  return std::move(MakeSynthetic(options, seed)).value();
}

double Distance(std::span<const double> a, std::span<const double> b) {
  return std::sqrt(Dot(a, a) + Dot(b, b) - 2 * Dot(a, b));
}

TEST(SyntheticTest, ParametersHaveNormOneAndKeepTheirDistance) {
  const auto environment = Make({.models = 100, .dim = 25});
  for (std::size_t k = 0; k < 100; ++k) {
    const auto parameter = environment->parameter(k);
    EXPECT_NEAR(Dot(parameter, parameter), 1, 1e-12);
    for (std::size_t other = 0; other < k; ++other) {
      EXPECT_GE(Distance(parameter, environment->parameter(other)), 0.85);
    }
  }
}

TEST(SyntheticTest, VisitOffersDifferentUnitArmsWithTheirTrueMeans) {
  const auto environment = Make({.users = 3, .arms = 10, .pool = 12});
  environment->StartRound(0);
  Visit visit;
  environment->MakeVisit(2, visit);
  ASSERT_EQ(visit.means.size(), 10U);
  std::set<std::vector<double>> different;
  for (std::size_t i = 0; i < 10; ++i) {
    const std::span<const double> arm = std::span(visit.arms).subspan(i * 25, 25);
    EXPECT_NEAR(Dot(arm, arm), 1, 1e-12);
    EXPECT_DOUBLE_EQ(visit.means[i], Dot(arm, environment->parameter(environment->model_of(2))));
    different.emplace(arm.begin(), arm.end());
  }
  EXPECT_EQ(different.size(), 10U);
}

TEST(SyntheticTest, CoordinatesOfArmsShrinkAsTheirVariances) {
  // Before scaling, coordinate i has variance (d - i)/d: over many arms the ratio of the mean
  // squares of the first and the middle coordinate is about d / (d - 12).
  const auto environment = Make({.users = 1, .arms = 5000, .pool = 5000});
  environment->StartRound(0);
  Visit visit;
  environment->MakeVisit(0, visit);
  double first = 0;
  double middle = 0;
  for (std::size_t i = 0; i < 5000; ++i) {
    first += visit.arms[i * 25] * visit.arms[i * 25];
    middle += visit.arms[i * 25 + 12] * visit.arms[i * 25 + 12];
  }
  EXPECT_NEAR(middle / first, 13.0 / 25, 0.04);
}

TEST(SyntheticTest, SameSeedGivesTheSameVisitsAndAnotherSeedOthers) {
  const SyntheticOptions options{.users = 4, .rounds = 30, .period_min = 5, .period_max = 9};
  const auto a = Make(options, 7);
  const auto b = Make(options, 7);
  const auto c = Make(options, 8);
  Visit visit_a;
  Visit visit_b;
  Visit visit_c;
  for (std::size_t round = 0; round < 30; ++round) {
    for (Environment* environment : {a.get(), b.get(), c.get()}) environment->StartRound(round);
    for (UserId user = 0; user < 4; ++user) {
      a->MakeVisit(user, visit_a);
      b->MakeVisit(user, visit_b);
      c->MakeVisit(user, visit_c);
      EXPECT_EQ(visit_a.arms, visit_b.arms);
      EXPECT_EQ(visit_a.noise, visit_b.noise);
      EXPECT_NE(visit_a.noise, visit_c.noise);
      EXPECT_EQ(a->model_of(user), b->model_of(user));
    }
  }
}

TEST(SyntheticTest, UsersChangeWithinThePeriodToAnotherParameter) {
  const auto environment =
      Make({.users = 50, .models = 4, .rounds = 400, .period_min = 20, .period_max = 40});
  std::vector<std::size_t> last(50, 0);
  std::vector<std::size_t> model(50);
  for (UserId user = 0; user < 50; ++user) model[user] = environment->model_of(user);
  std::set<std::size_t> lengths;
  for (std::size_t round = 0; round < 400; ++round) {
    environment->StartRound(round);
    for (UserId user = 0; user < 50; ++user) {
      EXPECT_EQ(environment->changed(user), environment->model_of(user) != model[user]);
      if (!environment->changed(user)) continue;
      lengths.insert(round - last[user]);
      last[user] = round;
      model[user] = environment->model_of(user);
    }
  }
  // A user changes when the round exceeds the last change plus the length: one later.
  EXPECT_EQ(*lengths.begin(), 21U);
  EXPECT_EQ(*lengths.rbegin(), 41U);
  EXPECT_EQ(lengths.size(), 21U);
}

TEST(SyntheticTest, DirichletSettingAddsParametersAndStationaryNeverChanges) {
  SyntheticOptions options{.setting = Setting::kDirichletProcess,
                           .users = 50,
                           .models = 3,
                           .rounds = 300,
                           .period_min = 10,
                           .period_max = 20};
  const auto growing = Make(options);
  options.setting = Setting::kStationary;
  const auto still = Make(options);
  for (std::size_t round = 0; round < 300; ++round) {
    growing->StartRound(round);
    still->StartRound(round);
    for (UserId user = 0; user < 50; ++user) EXPECT_FALSE(still->changed(user));
  }
  EXPECT_GT(growing->model_count(), 3U);
  EXPECT_EQ(still->model_count(), 3U);
  EXPECT_EQ(still->hazard(), 0);
  EXPECT_DOUBLE_EQ(growing->hazard(), 2.0 / 30);
}

TEST(SyntheticTest, NoiseHasItsStandardDeviation) {
  const auto environment = Make({.users = 2000, .noise = 0.3});
  environment->StartRound(0);
  Visit visit;
  double squares = 0;
  for (UserId user = 0; user < 2000; ++user) {
    environment->MakeVisit(user, visit);
    squares += visit.noise * visit.noise;
  }
  EXPECT_NEAR(std::sqrt(squares / 2000), 0.3, 0.015);
}

TEST(SyntheticTest, BadOptionsAreNamedWithTheirValueAndWhatIsAllowed) {
  const auto message = [](const SyntheticOptions& options) {
    const auto result = MakeSynthetic(options, 1);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_EQ(message({.period_min = 9, .period_max = 3}),
            "period = 9:3, expected MIN:MAX with 1 ≤ MIN ≤ MAX");
  EXPECT_EQ(message({.noise = 0}), "noise = 0, expected a number from 1e-06 to 1e+06");
  EXPECT_EQ(message({.noise = std::nan("")}), "noise = nan, expected a number from 1e-06 to 1e+06");
  EXPECT_EQ(message({.arms = 20, .pool = 10}),
            "arms = 20, expected a whole number from 1 to 10 (the pool of arms)");
  EXPECT_EQ(message({.users = 0}), "users = 0, expected a whole number from 1 to 10000000");
  EXPECT_NE(message({.models = 50, .dim = 2}).find("no room for more than"), std::string::npos);
}

}  // namespace
}  // namespace codband
