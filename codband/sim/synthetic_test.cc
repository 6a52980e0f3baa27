#include "codband/sim/synthetic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "codband/linalg/kernels.h"

namespace codband::sim {
namespace {

std::unique_ptr<Environment> Make(const SyntheticOptions& options, std::uint64_t seed = 1) {
  return std::move(MakeSynthetic(options, seed)).value();
}

double Distance(std::span<const double> a, std::span<const double> b) {
  return std::sqrt(linalg::Dot(a, a) + linalg::Dot(b, b) - 2 * linalg::Dot(a, b));
}

TEST(SyntheticTest, ParametersHaveNormOneAndKeepTheirDistance) {
  const auto environment = Make({.models = 100, .dim = 25});
  for (std::size_t k = 0; k < 100; ++k) {
    const auto parameter = environment->parameter(k);
    EXPECT_NEAR(linalg::Dot(parameter, parameter), 1, 1e-12);
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
    EXPECT_NEAR(linalg::Dot(arm, arm), 1, 1e-12);
    EXPECT_DOUBLE_EQ(visit.means[i],
                     linalg::Dot(arm, environment->parameter(environment->model_of(2))));
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
      EXPECT_EQ(visit_a.rewards, visit_b.rewards);
      EXPECT_NE(visit_a.rewards, visit_c.rewards);
      EXPECT_EQ(a->model_of(user), b->model_of(user));
    }
  }
}

TEST(SyntheticTest, VisitsOfThePaperStayAsTheyWere) {
  // Sums over all visits of a run, recorded when there was only the paper's population.
  const struct {
    Setting setting;
    double visits;
    std::size_t changes;
  } kept[] = {{Setting::kDirichletProcess, 30273.5932093, 675039},
              {Setting::kFixedSet, 36170.8052449, 11423},
              {Setting::kStationary, 49942.0679522, 712459}};
  for (const auto& [setting, visits, changes] : kept) {
    const auto environment = Make({.setting = setting,
                                   .users = 5,
                                   .models = 3,
                                   .rounds = 60,
                                   .period_min = 10,
                                   .period_max = 20,
                                   .arms = 4,
                                   .pool = 30,
                                   .dim = 6},
                                  11);
    double sum = 0;
    double weight = 0;
    std::size_t digest = 0;
    Visit visit;
    for (std::size_t round = 0; round < 60; ++round) {
      environment->StartRound(round);
      for (UserId user = 0; user < 5; ++user) {
        environment->MakeVisit(user, visit);
        ++weight;
        for (std::size_t i = 0; i < 4; ++i) {
          sum += weight * static_cast<double>(i + 1) * visit.rewards[i];
          for (std::size_t j = 0; j < 6; ++j) {
            sum += static_cast<double>(j + 1) * visit.arms[i * 6 + j];
          }
        }
        digest = digest * 31 % 1'000'003 + environment->model_of(user) +
                 (environment->changed(user) ? 7 : 0);
      }
    }
    EXPECT_NEAR(sum, visits, 1e-6);
    EXPECT_EQ(digest, changes);
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

TEST(SyntheticTest, RandomOrderDrawsUsersUniformly) {
  const auto environment = Make({.users = 20, .rounds = 1000, .order = VisitOrder::kRandom});
  const auto again = Make({.users = 20, .rounds = 1000, .order = VisitOrder::kRandom});
  std::vector<double> visits(20);
  double repeats = 0;
  Visit visit;
  Visit visit_again;
  UserId last = 0;
  for (std::size_t round = 0; round < 1000; ++round) {
    environment->StartRound(round);
    again->StartRound(round);
    for (std::size_t slot = 0; slot < 20; ++slot) {
      environment->MakeVisit(slot, visit);
      again->MakeVisit(slot, visit_again);
      ASSERT_LT(visit.user, 20U);
      ASSERT_EQ(visit.user, visit_again.user);
      visits[visit.user] += 1;
      repeats += visit.user == last ? 1 : 0;
      last = visit.user;
    }
  }
  // Binomial with mean 1000 and deviation 31; one visit in 20 is by the user of the one before.
  for (const double count : visits) EXPECT_NEAR(count, 1000, 4 * 31);
  EXPECT_NEAR(repeats, 1000, 4 * 31);
}

// The parameter that a user acts on, from the means of two arms in two dimensions.
std::array<double, 2> Solve(const Visit& visit) {
  const auto& x = visit.arms;
  const double determinant = x[0] * x[3] - x[1] * x[2];
  return {(visit.means[0] * x[3] - visit.means[1] * x[1]) / determinant,
          (visit.means[1] * x[0] - visit.means[0] * x[2]) / determinant};
}

TEST(SyntheticTest, DriftMovesTheParameterGraduallyToThatOfAnotherModel) {
  const SyntheticOptions options{.users = 6,
                                 .models = 4,
                                 .rounds = 500,
                                 .period_min = 60,
                                 .period_max = 90,
                                 .arms = 2,
                                 .pool = 2,
                                 .dim = 2,
                                 .drift = true};
  const auto environment = Make(options);
  Visit visit;
  std::vector<std::array<double, 2>> last(options.users);
  std::vector<std::size_t> model(options.users);
  std::vector<int> arrivals(options.users);
  std::vector<int> changes(options.users);
  for (std::size_t round = 0; round < options.rounds; ++round) {
    environment->StartRound(round);
    for (UserId user = 0; user < options.users; ++user) {
      environment->MakeVisit(user, visit);
      const auto theta = Solve(visit);
      EXPECT_NEAR(linalg::Dot(theta, theta), 1, 1e-9);
      const double to_model = Distance(theta, environment->parameter(environment->model_of(user)));
      if (round == 0) {
        EXPECT_NEAR(to_model, 0, 1e-7);
      } else {
        // Half a turn takes 61 rounds at least.
        EXPECT_LT(Distance(theta, last[user]), std::numbers::pi / 61 + 1e-7);
        EXPECT_GT(Distance(theta, last[user]), 0);
        EXPECT_EQ(environment->changed(user), environment->model_of(user) != model[user]);
      }
      if (environment->changed(user)) {
        // Halfway: equally far from both, up to one step.
        EXPECT_NEAR(to_model, Distance(theta, environment->parameter(model[user])), 0.1);
        ++changes[user];
      }
      arrivals[user] += round > 0 && to_model < 1e-7 ? 1 : 0;
      last[user] = theta;
      model[user] = environment->model_of(user);
    }
  }
  for (UserId user = 0; user < options.users; ++user) {
    EXPECT_GE(arrivals[user], 5);
    EXPECT_LE(arrivals[user], 8);
    EXPECT_GE(changes[user], arrivals[user]);
    EXPECT_LE(changes[user], arrivals[user] + 1);
  }
}

TEST(SyntheticTest, NovelParametersAreNewToAllUsers) {
  const auto environment = Make({.setting = Setting::kNovel,
                                 .users = 20,
                                 .models = 3,
                                 .rounds = 300,
                                 .period_min = 10,
                                 .period_max = 20,
                                 .dim = 5});
  std::set<std::size_t> seen;
  std::vector<std::size_t> model(20);
  for (UserId user = 0; user < 20; ++user) {
    model[user] = environment->model_of(user);
    seen.insert(model[user]);
  }
  std::size_t changes = 0;
  for (std::size_t round = 0; round < 300; ++round) {
    environment->StartRound(round);
    for (UserId user = 0; user < 20; ++user) {
      const std::size_t now = environment->model_of(user);
      EXPECT_EQ(environment->changed(user), now != model[user]);
      if (!environment->changed(user)) continue;
      ++changes;
      EXPECT_TRUE(seen.insert(now).second);
      EXPECT_GE(Distance(environment->parameter(now), environment->parameter(model[user])), 0.85);
      model[user] = now;
    }
  }
  EXPECT_GE(changes, 20U * 300 / 21 - 20);
  std::set<std::vector<double>> different;
  for (std::size_t k = 0; k < environment->model_count(); ++k) {
    const auto parameter = environment->parameter(k);
    EXPECT_NEAR(linalg::Dot(parameter, parameter), 1, 1e-12);
    different.emplace(parameter.begin(), parameter.end());
  }
  EXPECT_EQ(different.size(), 3 + changes);
}

TEST(SyntheticTest, ParametersAreAboutTheirSeparationApart) {
  for (const double separation : {0.1, 0.4, 1.0}) {
    const auto environment = Make({.models = 20, .separation = separation});
    double sum = 0;
    for (std::size_t k = 0; k < 20; ++k) {
      const auto parameter = environment->parameter(k);
      EXPECT_NEAR(linalg::Dot(parameter, parameter), 1, 1e-12);
      for (std::size_t other = 0; other < k; ++other) {
        const double distance = Distance(parameter, environment->parameter(other));
        EXPECT_GE(distance, 0.75 * separation);
        EXPECT_LE(distance, std::sqrt(2) * separation + 1e-12);
        sum += distance;
      }
    }
    EXPECT_NEAR(sum / (20 * 19 / 2), separation, 0.03 * separation);
  }
}

TEST(SyntheticTest, PoolAsLargeAsTheOfferGivesTheSameArmsAtEveryVisit) {
  const auto environment = Make({.users = 5, .rounds = 20, .arms = 6, .pool = 6, .dim = 4});
  std::set<std::set<std::vector<double>>> offers;
  Visit visit;
  for (std::size_t round = 0; round < 20; ++round) {
    environment->StartRound(round);
    for (std::size_t slot = 0; slot < 5; ++slot) {
      environment->MakeVisit(slot, visit);
      std::set<std::vector<double>> arms;
      for (std::size_t i = 0; i < 6; ++i) {
        const std::span<const double> arm = std::span(visit.arms).subspan(i * 4, 4);
        arms.emplace(arm.begin(), arm.end());
      }
      offers.insert(std::move(arms));
    }
  }
  EXPECT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers.begin()->size(), 6U);
}

TEST(SyntheticTest, KindOfRewardsChangesNeitherArmsNorUsers) {
  SyntheticOptions options{.users = 3, .rounds = 30, .period_min = 5, .period_max = 9};
  const auto gaussian = Make(options);
  options.rewards = RewardKind::kCounts;
  const auto counts = Make(options);
  EXPECT_EQ(gaussian->noise(), 0.1);
  EXPECT_EQ(counts->noise(), 1);
  Visit visit;
  Visit count;
  for (std::size_t round = 0; round < 30; ++round) {
    gaussian->StartRound(round);
    counts->StartRound(round);
    for (std::size_t slot = 0; slot < 3; ++slot) {
      gaussian->MakeVisit(slot, visit);
      counts->MakeVisit(slot, count);
      EXPECT_EQ(visit.arms, count.arms);
      for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_DOUBLE_EQ(count.means[i], std::max(0.0, 1 + 2 * visit.means[i]));
        EXPECT_EQ(count.rewards[i], std::floor(count.rewards[i]));
      }
    }
  }
}

TEST(SyntheticTest, NoiseHasItsStandardDeviation) {
  const auto environment = Make({.users = 2000, .noise = 0.3});
  environment->StartRound(0);
  Visit visit;
  double squares = 0;
  for (UserId user = 0; user < 2000; ++user) {
    environment->MakeVisit(user, visit);
    const double noise = visit.rewards[0] - visit.means[0];
    squares += noise * noise;
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
  EXPECT_EQ(message({.separation = 1.5}), "separation = 1.5, expected a number from 0.01 to 1.4");
  EXPECT_EQ(message({.separation = std::nan("")}),
            "separation = nan, expected a number from 0.01 to 1.4");
  EXPECT_EQ(message({.setting = Setting::kStationary, .drift = true}),
            "drift = true with setting = 3, expected setting 1, 2 or 4: in setting 3 no user "
            "changes");
  EXPECT_EQ(message({.models = 2, .dim = 1, .drift = true}),
            "dim = 1, expected a whole number from 2 to 1024 for drift, separation or setting 4");
}

}  // namespace
}  // namespace codband::sim
