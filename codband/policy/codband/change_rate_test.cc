#include "codband/policy/codband/change_rate.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(ChangeRateTest, StartsAtTheHazardGivenAndFallsWhileNobodyChanges) {
  ChangeRate rate(0.01, true);
  EXPECT_NEAR(rate.hazard(), 0.01, 1e-15);
  for (int i = 0; i < 900; ++i) rate.Observe();
  EXPECT_NEAR(rate.hazard(), 1.0 / 1000, 1e-15);  // one change in 100 + 900
}

TEST(ChangeRateTest, IsTheShareOfObservationsWithAConfirmedChange) {
  Verdicts user;
  ChangeRate rate(0.01, true);
  for (int i = 0; i < 100'000; ++i) {
    rate.Observe();
    if (i % 50 == 0) rate.Confirm(user);
  }
  EXPECT_NEAR(rate.hazard(), 2001.0 / 100'100, 1e-15);
}

TEST(ChangeRateTest, RefutedChangesMakeTheNextHarderAndConfirmedOnesUndoIt) {
  Verdicts user;
  ChangeRate rate(0.01, true);
  Verdicts other;
  rate.Refute(user);
  EXPECT_NEAR(rate.hazard(), 0.01 * std::exp(-1), 1e-15);
  rate.Refute(other);
  EXPECT_NEAR(rate.hazard(), 0.01 * std::exp(-2), 1e-15);
  for (int i = 1; i <= 20; ++i) {
    rate.Confirm(user);
    EXPECT_NEAR(rate.hazard(), 0.01 * (1 + i) * std::exp(-2 + 0.1 * i), 1e-12);
  }
  rate.Confirm(user);  // no more than all of it
  EXPECT_NEAR(rate.hazard(), 0.22, 1e-12);
}

TEST(ChangeRateTest, FixedHazardStaysAsItIs) {
  Verdicts user;
  ChangeRate rate(0.01, false);
  for (int i = 0; i < 100; ++i) rate.Observe();
  rate.Confirm(user);
  rate.Refute(user);
  EXPECT_EQ(rate.hazard(), 0.01);
}

TEST(ChangeRateTest, TellsWhenMostOfTheHazardIsOfAFashion) {
  ChangeRate rate(0.001, true);
  EXPECT_FALSE(rate.in_fashion());
  for (int i = 0; i < 30; ++i) rate.Weigh(8, 10);
  EXPECT_TRUE(rate.in_fashion());
  rate.EndFashion();
  EXPECT_FALSE(rate.in_fashion());
}

TEST(TrialTest, SaveLoadKeepsAllOfIt) {
  for (int flags = 0; flags < 4; ++flags) {
    Trial trial;
    trial.Start(7, (flags & 1) != 0);
    trial.placed = (flags & 2) != 0;
    trial.outlier_pause = 16;
    ByteWriter out;
    trial.Save(out);
    ByteReader in(out.bytes());
    Trial restored;
    restored.Load(in);
    ASSERT_TRUE(in.ok());
    EXPECT_EQ(restored.old_model, 7U);
    EXPECT_EQ(restored.left, Trial::kLength);
    EXPECT_EQ(restored.in_fashion, trial.in_fashion);
    EXPECT_EQ(restored.placed, trial.placed);
    EXPECT_EQ(restored.outlier_pause, 16);
  }
}

TEST(ChangeRateTest, SaveLoadGoesOnAlike) {
  Verdicts user;
  ChangeRate rate(0.01, true);
  for (int i = 0; i < 37; ++i) rate.Observe();
  rate.Confirm(user);
  rate.Refute(user);
  ByteWriter out;
  rate.Save(out);
  ByteReader in(out.bytes());
  ChangeRate restored(0.01, true);
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(restored.hazard(), rate.hazard());
  rate.Confirm(user);
  restored.Confirm(user);
  EXPECT_EQ(restored.hazard(), rate.hazard());
}

TEST(ChangeRateTest, OneUserWhoseChangesAreAllRefutedDoesNotDecideForTheOthers) {
  ChangeRate rate(0.01, true);
  Verdicts noisy;
  for (int i = 0; i < 100; ++i) rate.Refute(noisy);
  EXPECT_NEAR(rate.hazard(), 0.01 * std::exp(-1), 1e-15);
  for (int i = 0; i < 10; ++i) {
    Verdicts other;
    rate.Refute(other);
  }
  EXPECT_NEAR(rate.hazard(), 0.01 * std::exp(-11), 1e-15);
}

TEST(ChangeRateTest, WhoLeavesTakesTheirVerdictsAlong) {
  ChangeRate rate(0.01, true);
  Verdicts user;
  Verdicts other;
  for (int i = 0; i < 200; ++i) rate.Observe();
  rate.Refute(other);
  const double before = rate.hazard();
  for (int i = 0; i < 50; ++i) rate.Observe();
  rate.Refute(user);
  rate.Confirm(user);
  rate.Forget(50, user);
  EXPECT_NEAR(rate.hazard(), before, 1e-15);
}

TEST(ChangeRateTest, NegativeCautionIsRefused) {
  ByteWriter out;
  out.U64(1);
  out.U64(0);
  out.Double(-1);
  ByteReader in(out.bytes());
  ChangeRate rate(0.01, true);
  rate.Load(in);
  EXPECT_EQ(in.status().message(), "caution is negative (before byte 24)");
}

TEST(TrialTest, SaveLoadIsExactAndATrialThatIsTooLongRefused) {
  const Trial trial{.old_model = 7, .evidence = -0.1, .left = Trial::kLength, .verdicts = {5, 2}};
  ByteWriter out;
  trial.Save(out);
  ByteReader in(out.bytes());
  Trial restored;
  EXPECT_EQ(restored.left, 0U);  // no trial to begin with
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(restored.old_model, trial.old_model);
  EXPECT_EQ(restored.evidence, trial.evidence);
  EXPECT_EQ(restored.left, trial.left);
  EXPECT_EQ(restored.verdicts.confirmed, trial.verdicts.confirmed);
  EXPECT_EQ(restored.verdicts.refuted, trial.verdicts.refuted);

  ByteWriter too_long;
  Trial long_trial;
  long_trial.left = Trial::kLength + 1;
  long_trial.Save(too_long);
  ByteReader damaged(too_long.bytes());
  restored.Load(damaged);
  EXPECT_EQ(damaged.status().message(), "rest of a trial is too long (before byte 17)");
}

}  // namespace
}  // namespace codband
