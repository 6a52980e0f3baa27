#include "codband/policy/propensity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace codband {
namespace {

TEST(PropensityTest, CertainIsOneForTheChosenArmAndZeroForOthers) {
  const Propensity certain = Propensity::Certain();
  EXPECT_TRUE(certain.knows_every_arm());
  EXPECT_EQ(certain.OfChosen(2, 5), 1);
  EXPECT_EQ(certain.OfArm(2, 2, 5), 1);
  EXPECT_EQ(certain.OfArm(0, 2, 5), 0);
}

TEST(PropensityTest, UniformIsTheSameForEveryArm) {
  EXPECT_EQ(Propensity::Uniform().OfChosen(2, 7), 1.0 / 7);
  EXPECT_EQ(Propensity::Uniform().OfArm(6, 2, 7), 1.0 / 7);
  EXPECT_EQ(Propensity::Uniform().OfChosen(0, 1), 1);
}

TEST(PropensityTest, EpsilonGreedyFavoursTheGreedyArmNotTheChosenOne) {
  const Propensity mixed = Propensity::EpsilonGreedy(0.25, 3);
  EXPECT_EQ(mixed.OfChosen(3, 4), 0.75 + 0.0625);
  EXPECT_EQ(mixed.OfChosen(1, 4), 0.0625);
  EXPECT_EQ(mixed.OfArm(3, 1, 4), 0.75 + 0.0625);
}

TEST(PropensityTest, OfTellsTheChosenArmAloneAndSampledNothing) {
  EXPECT_FALSE(Propensity::Of(0.3).knows_every_arm());
  EXPECT_EQ(Propensity::Of(0.3).OfChosen(1, 4), 0.3);
  EXPECT_FALSE(Propensity::Sampled().knows_every_arm());
  EXPECT_TRUE(std::isnan(Propensity::Sampled().OfChosen(1, 4)));
}

TEST(PropensityTest, RefusesWhatIsNoProbability) {
  for (const double p : {0.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(static_cast<void>(Propensity::Of(p)), InternalError) << p;
  }
  for (const double epsilon : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(static_cast<void>(Propensity::EpsilonGreedy(epsilon, 0)), InternalError)
        << epsilon;
  }
}

}  // namespace
}  // namespace codband
