#include "codband/policy/codband/reward_noise.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(RewardNoiseTest, NothingButZerosAndOnesAreClicks) {
  RewardNoise noise;
  EXPECT_TRUE(noise.clicks());
  for (const double r : {1.0, 0.0, -0.0, 1.0}) noise.Watch(r);
  EXPECT_TRUE(noise.clicks());
  noise.Watch(0.5);
  EXPECT_FALSE(noise.clicks());
  noise.Watch(1);  // for good
  EXPECT_FALSE(noise.clicks());
}

TEST(RewardNoiseTest, OneUserOfManyDoesNotTellWhatRewardsAre) {
  RewardNoise noise;
  for (int i = 0; i < 200; ++i) noise.Watch(1, 0, 10);
  EXPECT_TRUE(noise.Watch(0.5, 0, 10));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(noise.Watch(0.5, 1, 10));
  EXPECT_TRUE(noise.clicks());
  // Where the others have some as well it counts for as much as theirs.
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(noise.Watch(0.5, 0, 10));
  EXPECT_FALSE(noise.clicks());
  EXPECT_TRUE(noise.Watch(0.5, 1, 10));
  EXPECT_TRUE(noise.Watch(0.5, 3, 10));
  EXPECT_FALSE(noise.Watch(0.5, 4, 10));
  // Of few users everybody tells.
  EXPECT_TRUE(noise.Watch(0.5, 100, 9));
}

TEST(RewardNoiseTest, GaussianIsTheNormalDensity) {
  RewardNoise noise;
  noise.Watch(0.5);
  // ln N(2 | 1, 4) = -½ (1/4 + ln 8π).
  EXPECT_NEAR(noise.LogDensity(2, 1, 4), -0.5 * (0.25 + std::log(8 * std::numbers::pi)), 1e-15);
  double mass = 0;
  for (double r = -20; r < 20; r += 0.01) mass += 0.01 * std::exp(noise.LogDensity(r, 1, 4));
  EXPECT_NEAR(mass, 1, 1e-9);
}

TEST(RewardNoiseTest, ClicksHaveTheirChanceWhateverTheVariance) {
  const RewardNoise noise;
  for (const double variance : {1e-9, 1.0, 1e9}) {
    EXPECT_NEAR(noise.LogDensity(1, 0.3, variance), std::log(0.3), 1e-15);
    EXPECT_NEAR(noise.LogDensity(0, 0.3, variance), std::log(0.7), 1e-15);
  }
}

// 0, or the price if something was bought.
RewardNoise Purchases(double price, int bought, int not_bought) {
  RewardNoise noise;
  for (int i = 0; i < bought + not_bought; ++i) {
    const double r = i < bought ? price : 0;
    noise.Watch(r);
    noise.WatchSize(r);
  }
  return noise;
}

TEST(RewardNoiseTest, APurchaseIsAClickThatIsWorthMore) {
  for (const double price : {0.01, 40.0, 1e6}) {
    const RewardNoise noise = Purchases(price, 10, 30);
    EXPECT_TRUE(noise.clicks());
    EXPECT_NEAR(noise.click(), price, 1e-9 * price);
    EXPECT_NEAR(noise.PurchaseChance().value(), 0.25, 1e-12);
    EXPECT_NEAR(noise.LogDensity(price, 0.3 * price, 1), std::log(0.3), 1e-9);
    EXPECT_NEAR(noise.LogDensity(0, 0.3 * price, 1), std::log(0.7), 1e-9);
    // What was taken from the reward as the item's own.
    EXPECT_NEAR(noise.LogDensity(-0.1 * price, 0.2 * price, 1, 0.1 * price), std::log(0.7), 1e-9);
  }
}

TEST(RewardNoiseTest, RewardsWithoutManyZerosAreNoPurchases) {
  EXPECT_TRUE(Purchases(40, 30, 10).clicks());
  EXPECT_FALSE(Purchases(40, 31, 10).clicks());
  RewardNoise signs = Purchases(40, 10, 30);
  signs.Watch(-40);
  signs.WatchSize(-40);
  EXPECT_FALSE(signs.clicks());
  RewardNoise strict = Purchases(40, 10, 30);
  strict.BeStrict();
  strict.WatchSize(40);
  EXPECT_FALSE(strict.clicks());
  EXPECT_FALSE(Purchases(1, 10, 30).PurchaseChance());  // clicks
}

TEST(RewardNoiseTest, WhatPurchasesAreWorthIsSaved) {
  const RewardNoise noise = Purchases(40, 10, 30);
  ByteWriter out;
  noise.SaveCounts(out);
  noise.SaveSizes(out);
  ByteReader in(out.bytes());
  RewardNoise loaded;
  loaded.LoadCounts(in);
  loaded.LoadSizes(in);
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(loaded.click(), noise.click());
  EXPECT_EQ(loaded.PurchaseChance(), noise.PurchaseChance());
  // A state that does not tell them: rewards stay as they were, whatever comes.
  loaded.ForgetSizes();
  EXPECT_FALSE(loaded.clicks());
  for (int i = 0; i < 100; ++i) loaded.WatchSize(0);
  loaded.WatchSize(40);
  EXPECT_FALSE(loaded.clicks());
}

TEST(RewardNoiseTest, ClicksAreNeverQuiteCertain) {
  const RewardNoise noise;
  for (const double beyond : {1.0, 0.99, 7.0}) {
    EXPECT_NEAR(noise.LogDensity(0, beyond, 1), std::log(0.02), 1e-12);
    EXPECT_NEAR(noise.LogDensity(1, beyond, 1), std::log(0.98), 1e-12);
    EXPECT_NEAR(noise.LogDensity(1, 1 - beyond, 1), std::log(0.02), 1e-12);
    EXPECT_NEAR(noise.LogDensity(0, 1 - beyond, 1), std::log(0.98), 1e-12);
  }
}

TEST(RewardNoiseTest, RareClickIsAsSurprisingAsItsChanceSays) {
  for (const double p : {0.01, 0.05, 0.2}) {
    const double gaussian = (1 - p) * (1 - p) / (2 * p * (1 - p));
    EXPECT_NEAR(RewardNoise::TrustInGaussian(p) * gaussian, -std::log(p), 1e-12) << p;
  }
  EXPECT_EQ(RewardNoise::TrustInGaussian(0.5), 1);
  EXPECT_EQ(RewardNoise::TrustInGaussian(1), 1);
  EXPECT_GT(RewardNoise::TrustInGaussian(0), 0);
}

}  // namespace
}  // namespace codband
