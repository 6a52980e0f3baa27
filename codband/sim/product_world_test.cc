// Populations of the kind that products have: what SyntheticOptions offers beyond the paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "codband/linalg/kernels.h"
#include "codband/sim/synthetic.h"

namespace codband::sim {
namespace {

std::unique_ptr<Environment> MakeProduct(const SyntheticOptions& options) {
  auto environment = std::move(MakeSynthetic(options, 1)).value();
  environment->StartRound(0);
  return environment;
}

Visit VisitOf(const Environment& environment, std::size_t slot) {
  Visit visit;
  environment.MakeVisit(slot, visit);
  return visit;
}

std::span<const double> ArmOf(const Visit& visit, std::size_t arm, std::size_t dim) {
  return std::span(visit.arms).subspan(arm * dim, dim);
}

TEST(ProductWorldTest, OneHotArmsHaveOneValueInEachOfFourFields) {
  const auto environment = MakeProduct(
      {.users = 1, .arms = 50, .pool = 50, .dim = 22, .features = FeatureKind::kOneHot});
  const Visit visit = VisitOf(*environment, 0);
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < 50; ++i) {
    const std::span<const double> arm = ArmOf(visit, i, 22);
    for (std::size_t field = 0; field < 4; ++field) {
      const std::size_t first = field * 22 / 4;
      const auto values = arm.subspan(first, (field + 1) * 22 / 4 - first);
      EXPECT_EQ(std::ranges::count(values, 0.5), 1);
      EXPECT_EQ(std::ranges::count(values, 0.0), static_cast<int>(values.size()) - 1);
    }
    for (std::size_t j = 0; j < 22; ++j) {
      if (arm[j] != 0) seen.insert(j);
    }
  }
  EXPECT_EQ(seen.size(), 22U);
}

TEST(ProductWorldTest, PaddedArmsHaveAFifthOfTheFeatures) {
  const auto environment = MakeProduct({.users = 1, .features = FeatureKind::kPadded});
  const Visit visit = VisitOf(*environment, 0);
  for (std::size_t i = 0; i < 10; ++i) {
    const std::span<const double> arm = ArmOf(visit, i, 25);
    EXPECT_NEAR(linalg::Dot(arm, arm), 1, 1e-12);
    EXPECT_EQ(std::ranges::count(arm, 0.0), 20);
  }
}

TEST(ProductWorldTest, ArmsThatAreAlikeAreOfTenKinds) {
  const auto environment =
      MakeProduct({.users = 1, .arms = 300, .pool = 300, .features = FeatureKind::kAlike});
  const Visit visit = VisitOf(*environment, 0);
  std::set<std::vector<double>> kinds;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::span<const double> arm = ArmOf(visit, i, 25);
    kinds.emplace(arm.begin(), arm.end());
  }
  EXPECT_EQ(kinds.size(), 10U);
}

TEST(ProductWorldTest, AllOfALargeCatalogueAreOfferedOnceInAnotherOrderEachTime) {
  const auto environment = MakeProduct({.users = 2, .arms = 300, .pool = 300, .item_effects = 0});
  std::vector<ItemId> first = VisitOf(*environment, 0).items;
  std::vector<ItemId> second = VisitOf(*environment, 1).items;
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set<ItemId>(first.begin(), first.end()).size(), 300U);
}

TEST(ProductWorldTest, ClicksHaveTheRateAskedFor) {
  const auto environment =
      MakeProduct({.users = 1, .rewards = RewardKind::kClicks, .click_rate = 0.05});
  EXPECT_NEAR(environment->noise(), std::sqrt(0.05 * 0.95), 1e-12);
  const Visit visit = VisitOf(*environment, 0);
  for (std::size_t i = 0; i < 10; ++i) {
    const double fit =
        linalg::Dot(ArmOf(visit, i, 25), environment->parameter(environment->model_of(0)));
    EXPECT_NEAR(visit.means[i], std::max(0.0, 0.05 * (1 + 4 * fit)), 1e-12);
    EXPECT_TRUE(visit.rewards[i] == 0 || visit.rewards[i] == 1);
  }
}

TEST(ProductWorldTest, ZipfsUsersComeInInverseProportionToTheirPlace) {
  const auto environment = MakeProduct({.users = 20, .rounds = 1000, .order = VisitOrder::kZipf});
  std::vector<double> visits(20);
  for (std::size_t round = 0; round < 1000; ++round) {
    environment->StartRound(round);
    for (std::size_t slot = 0; slot < 20; ++slot) ++visits[VisitOf(*environment, slot).user];
  }
  double harmonic = 0;
  for (int i = 1; i <= 20; ++i) harmonic += 1.0 / i;
  for (std::size_t u = 0; u < 20; ++u) {
    const double expected = 20000 / harmonic / static_cast<double>(u + 1);
    EXPECT_NEAR(visits[u], expected, 4 * std::sqrt(expected)) << u;
  }
}

TEST(ProductWorldTest, IndividualUsersOfOneTasteDiffer) {
  const SyntheticOptions options{.users = 200, .models = 1, .individual = 0.09};
  const auto environment = MakeProduct(options);
  double squares = 0;
  double mean = 0;
  for (UserId user = 0; user < 200; ++user) {
    const Visit visit = VisitOf(*environment, user);
    EXPECT_EQ(visit.means, VisitOf(*environment, user).means);
    const double own = visit.means[0] - linalg::Dot(ArmOf(visit, 0, 25), environment->parameter(0));
    mean += own / 200;
    squares += own * own / 200;
  }
  EXPECT_NEAR(mean, 0, 4 * 0.06 / std::sqrt(200));
  EXPECT_NEAR(squares, 0.09 / 25, 0.4 * 0.09 / 25);
}

TEST(ProductWorldTest, ItemsComeAndGo) {
  const SyntheticOptions options{
      .users = 1, .rounds = 100, .arms = 20, .pool = 20, .item_effects = 0.01, .item_life = 30};
  const auto environment = MakeProduct(options);
  std::map<ItemId, std::vector<double>> features;
  std::map<ItemId, std::size_t> rounds;
  for (std::size_t round = 0; round < 100; ++round) {
    environment->StartRound(round);
    const Visit visit = VisitOf(*environment, 0);
    for (std::size_t i = 0; i < 20; ++i) {
      const std::span<const double> arm = ArmOf(visit, i, 25);
      const auto [known, is_new] =
          features.emplace(visit.items[i], std::vector<double>(arm.begin(), arm.end()));
      EXPECT_TRUE(is_new || std::ranges::equal(known->second, arm)) << visit.items[i];
      ++rounds[visit.items[i]];
    }
  }
  EXPECT_GT(features.size(), 60U);
  EXPECT_EQ(
      std::ranges::max_element(rounds, {}, [](const auto& item) { return item.second; })->second,
      30U);
}

TEST(ProductWorldTest, ContextHasItsOwnPlaceInTheFeatures) {
  const auto environment = MakeProduct({.users = 100, .dim = 30, .contexts = 2});
  std::set<std::size_t> contexts;
  for (UserId user = 0; user < 100; ++user) {
    const Visit visit = VisitOf(*environment, user);
    std::optional<std::size_t> context;
    for (std::size_t i = 0; i < 10; ++i) {
      const std::span<const double> arm = ArmOf(visit, i, 30);
      EXPECT_NEAR(linalg::Dot(arm, arm), 1, 1e-12);
      const bool second = arm[10] == 0;
      EXPECT_TRUE(std::ranges::equal(arm.first(10), arm.subspan(second ? 20 : 10, 10)));
      EXPECT_EQ(std::ranges::count(arm.subspan(second ? 10 : 20, 10), 0.0), 10);
      EXPECT_EQ(context.value_or(second), second);  // of all arms of a visit
      context = second;
    }
    contexts.insert(*context);
  }
  EXPECT_EQ(contexts.size(), 2U);
}

TEST(ProductWorldTest, BadOptionsAreNamed) {
  const auto message = [](const SyntheticOptions& options) {
    return MakeSynthetic(options, 1).status().message();
  };
  EXPECT_EQ(message({.click_rate = 0.1}),
            "click-rate = 0.1 of gaussian, expected a number between 0 and 1, of clicks");
  EXPECT_EQ(message({.rewards = RewardKind::kClicks, .click_rate = 1}),
            "click-rate = 1 of clicks, expected a number between 0 and 1, of clicks");
  EXPECT_EQ(message({.individual = -1}), "individual = -1, expected a number from 0 to 100");
  EXPECT_EQ(message({.dim = 25, .contexts = 2}),
            "dim = 25, expected a multiple of 3, one more than contexts");
  EXPECT_EQ(message({.models = 2, .dim = 3, .features = FeatureKind::kOneHot}),
            "dim = 3, expected at least 4 for each context and 4 more, for one-hot features");
}

}  // namespace
}  // namespace codband::sim
