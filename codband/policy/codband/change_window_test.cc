#include "codband/policy/codband/change_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace codband {
namespace {

constexpr std::size_t kWindowDim = 2;
constexpr std::size_t kCapacity = 4;
constexpr RecordLayout kWindowLayout{.dim = kWindowDim, .columns = true};
// Before format 5.
constexpr RecordLayout kAllColumns{.dim = kWindowDim, .columns = false};

// Observation i has features (i, -i), reward 10 i and log predictive -i.
void Push(ChangeWindow& window, int i) {
  const double value = i;
  window.Push(std::vector<double>{value, -value}, 10 * value, -value);
}

void ExpectHolds(const ChangeWindow& window, const std::vector<int>& newest_first) {
  ASSERT_EQ(window.size(), newest_first.size());
  for (std::size_t age = 0; age < newest_first.size(); ++age) {
    const double value = newest_first[age];
    std::vector<double> x(kWindowDim);
    window.ReadFeatures(age, x);
    EXPECT_EQ(x, (std::vector<double>{value, -value})) << "age " << age;
    EXPECT_EQ(window.reward(age), 10 * value) << "age " << age;
    EXPECT_EQ(window.log_predictive(age), -value) << "age " << age;
  }
}

std::string Bytes(const ChangeWindow& window) {
  ByteWriter out;
  window.Save(out);
  return out.Take();
}

TEST(ChangeWindowTest, AgesCountFromTheNewestBeforeAndAfterItIsFull) {
  ChangeWindow window(false, kCapacity);
  ExpectHolds(window, {});
  std::vector<int> expected;
  for (int i = 1; i <= 11; ++i) {
    Push(window, i);
    expected.insert(expected.begin(), i);
    if (expected.size() > kCapacity) expected.pop_back();
    ExpectHolds(window, expected);
  }
}

TEST(ChangeWindowTest, CapacityZeroHoldsNone) {
  ChangeWindow window(false, 0);
  Push(window, 1);
  EXPECT_EQ(window.size(), 0U);
  const std::string bytes = Bytes(window);
  ByteReader in(bytes);
  ChangeWindow restored(false, 0);
  restored.Load(in, kWindowLayout);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok()) << in.status().ToString();
}

TEST(ChangeWindowTest, KeepsTheNewestFromAnyPlaceInTheRingAndGoesOn) {
  for (int pushed = 1; pushed <= 9; ++pushed) {
    for (std::size_t kept = 0; kept <= kCapacity + 1; ++kept) {
      ChangeWindow window(false, kCapacity);
      for (int i = 1; i <= pushed; ++i) Push(window, i);
      std::vector<int> expected;
      for (int i = pushed; i > 0 && expected.size() < std::min(kept, kCapacity); --i) {
        expected.push_back(i);
      }
      window.KeepNewest(kept);
      SCOPED_TRACE(testing::Message() << pushed << " pushed, " << kept << " kept");
      ExpectHolds(window, expected);
      for (int i = 101; i <= 106; ++i) {
        Push(window, i);
        expected.insert(expected.begin(), i);
        if (expected.size() > kCapacity) expected.pop_back();
        ExpectHolds(window, expected);
      }
    }
  }
}

TEST(ChangeWindowTest, BecomesLongAndUsualAgainAtAnyTimeAndIsReadBack) {
  constexpr std::size_t kLong = ChangeWindow::kLong * kCapacity;
  for (int before = 0; before <= 9; ++before) {
    for (int during = 0; during <= 40; ++during) {
      SCOPED_TRACE(testing::Message() << before << " before, " << during << " during");
      ChangeWindow window(false, kCapacity);
      std::vector<int> expected;
      const auto push = [&](ChangeWindow& to, int value, std::size_t most) {
        Push(to, value);
        expected.insert(expected.begin(), value);
        if (expected.size() > most) expected.pop_back();
      };
      for (int i = 1; i <= before; ++i) push(window, i, kCapacity);
      for (int i = 0; i < during; ++i) {
        window.SetLong(true);
        push(window, 100 + i, kLong);
      }
      ExpectHolds(window, expected);
      ByteWriter out;
      window.Save(out);
      ChangeWindow restored(false, kCapacity);
      ByteReader in(out.bytes());
      restored.Load(in, kWindowLayout);
      in.ExpectEnd();
      ASSERT_TRUE(in.ok()) << in.status().ToString();
      const bool stays = during % 2 == 0;  // long
      const std::size_t most = stays ? kLong : kCapacity;
      if (expected.size() > most) expected.resize(most);
      for (int i = 0; i < 6; ++i) {
        for (ChangeWindow* each : {&window, &restored}) each->SetLong(stays);
        Push(restored, 200 + i);
        push(window, 200 + i, most);
        ExpectHolds(window, expected);
        ExpectHolds(restored, expected);
      }
      ByteWriter bytes;
      ByteWriter same;
      window.Save(bytes);
      restored.Save(same);
      EXPECT_EQ(bytes.bytes(), same.bytes());
    }
  }
}

TEST(ChangeWindowTest, SaveLoadIsExactAndGoesOnAlike) {
  for (const int pushed : {0, 1, 3, 4, 6}) {
    for (const bool cut : {false, true}) {
      ChangeWindow window(false, kCapacity);
      for (int i = 1; i <= pushed; ++i) Push(window, i);
      if (cut) window.KeepNewest(2);
      const std::string bytes = Bytes(window);
      ByteReader in(bytes);
      ChangeWindow restored(false, kCapacity);
      restored.Load(in, kWindowLayout);
      in.ExpectEnd();
      ASSERT_TRUE(in.ok()) << in.status().ToString();
      EXPECT_EQ(Bytes(restored), bytes);
      for (int i = 101; i <= 103; ++i) {
        Push(window, i);
        Push(restored, i);
      }
      EXPECT_EQ(Bytes(restored), Bytes(window));
    }
  }
}

TEST(ChangeWindowTest, DamagedBytesAreRefused) {
  const auto loads = [](std::uint64_t count, std::uint64_t newest, std::size_t values) {
    ByteWriter out;
    out.U64(count);
    out.U64(newest);
    out.Doubles(std::vector<double>(values));
    out.Floats(std::vector<float>(values * (1 + kWindowDim)));
    ByteReader in(out.bytes());
    ChangeWindow window(false, kCapacity);
    window.Load(in, kAllColumns);
    return in.ok();
  };
  EXPECT_TRUE(loads(2, 1, 2));
  EXPECT_TRUE(loads(4, 2, 4));
  EXPECT_FALSE(loads(5, 0, 5));  // more than it can hold
  EXPECT_FALSE(loads(4, 4, 4));  // the newest is none of them
  EXPECT_FALSE(loads(2, 0, 2));  // not full, yet not in the order they came
  EXPECT_FALSE(loads(0, 1, 0));  // the newest of none
  EXPECT_FALSE(loads(4, 2, 3));  // cut off
  EXPECT_FALSE(loads(~0ULL, 0, 4));
}

TEST(ChangeWindowTest, RoundedFeaturesAreHeldExactly) {
  std::vector<double> x = {1.0 / 3, 1e-3};
  RoundFeatures(x);
  EXPECT_NE(x[0], 1.0 / 3);
  EXPECT_NEAR(x[0], 1.0 / 3, 1e-7);
  ChangeWindow window(false, kCapacity);
  window.Push(x, 0.1, 0);
  std::vector<double> read(kWindowDim);
  window.ReadFeatures(0, read);
  EXPECT_EQ(read, x);
  EXPECT_EQ(window.reward(0), 0.1);  // rewards in double precision
}

TEST(ChangeWindowTest, HoldsTheColumnsThatOccurAndReadsThemFromWiderVectors) {
  ChangeWindow window(true, kCapacity);
  window.Push(std::vector<double>{0, 3, 0, 1}, 1, -1);
  window.Push(std::vector<double>{2, 0, 0, 1}, 2, -2);
  window.Push(std::vector<double>{0, 0, 0, 5, 7, 1}, 3, -3);  // two more features by now
  std::vector<double> x(6);
  window.ReadFeatures(0, x);
  EXPECT_EQ(x, (std::vector<double>{0, 0, 0, 5, 7, 1}));
  window.ReadFeatures(1, x);
  EXPECT_EQ(x, (std::vector<double>{2, 0, 0, 0, 0, 1}));
  window.ReadFeatures(2, x);
  EXPECT_EQ(x, (std::vector<double>{0, 3, 0, 0, 0, 1}));
  EXPECT_EQ(window.log_predictive(1), -2);

  const std::string bytes = Bytes(window);
  ByteReader in(bytes);
  ChangeWindow restored(true, kCapacity);
  restored.Load(in, kWindowLayout);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(Bytes(restored), bytes);
  for (int i = 0; i < 5; ++i) window.Push(std::vector<double>{0, 0, 1, 0, 0, 1}, i, 0);
  window.ReadFeatures(3, x);
  EXPECT_EQ(x, (std::vector<double>{0, 0, 1, 0, 0, 1}));
}

TEST(ChangeWindowTest, PredictiveOfAnyRewardStaysFinite) {
  // As of a reward of 1e15 where the noise is 1e-6: below the least number of single precision.
  ChangeWindow window(false, 1);
  for (int i = 0; i < 2; ++i) {
    window.Push(std::vector<double>{1, 1}, 1e15, -5e41);
    EXPECT_TRUE(std::isfinite(window.log_predictive(0)));
    EXPECT_LT(window.log_predictive(0), -1e38);
  }
}

}  // namespace
}  // namespace codband
