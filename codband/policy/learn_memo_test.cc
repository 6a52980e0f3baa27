#include "codband/policy/learn_memo.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace codband {
namespace {

class LearnMemoTest : public testing::Test {
 protected:
  // Fills two numbers from `next_`, counting how often they are computed.
  std::array<double, 2> Fill(LearnMemo* memo) {
    std::array<double, 2> out{};
    LearnMemo::Fill(memo, out, [&] {
      ++computed_;
      out = {next_, next_ + 1};
      next_ += 10;
    });
    return out;
  }

  LearnMemo memo_;
  double next_ = 1;
  int computed_ = 0;
};

TEST_F(LearnMemoTest, ReplaysInTheOrderOfRecording) {
  memo_.StartRecording();
  const auto first = Fill(&memo_);
  const auto second = Fill(&memo_);
  EXPECT_NE(first, second);
  memo_.StartReplay();
  EXPECT_EQ(Fill(&memo_), first);
  EXPECT_EQ(Fill(&memo_), second);
  EXPECT_EQ(computed_, 2);
}

TEST_F(LearnMemoTest, ReplayStartsOverAndRecordingDropsWhatWasThere) {
  memo_.StartRecording();
  const auto first = Fill(&memo_);
  memo_.StartReplay();
  EXPECT_EQ(Fill(&memo_), first);
  memo_.StartReplay();
  EXPECT_EQ(Fill(&memo_), first);
  memo_.StartRecording();
  const auto later = Fill(&memo_);
  EXPECT_NE(later, first);
  memo_.StartReplay();
  EXPECT_EQ(Fill(&memo_), later);
}

TEST_F(LearnMemoTest, AskingForMoreThanWasRecordedIsAnError) {
  memo_.StartRecording();
  static_cast<void>(Fill(&memo_));
  memo_.StartReplay();
  static_cast<void>(Fill(&memo_));
  EXPECT_THROW(Fill(&memo_), InternalError);
}

// What there is no room for is computed by both; the next recording starts with all of the room.
TEST_F(LearnMemoTest, ObjectsAreKeptWhileThereIsRoom) {
  constexpr std::size_t kHalf = LearnMemo::kMostBytes / 2;
  std::string object;
  const auto follow = [&](std::size_t bytes) {
    LearnMemo::Follow<std::string>(
        &memo_, bytes, [&] { object = "computed " + std::to_string(++computed_); },
        [&](std::string& out) { out = object; }, [&](const std::string& in) { object = in; });
    return object;
  };
  for (int round = 0; round < 2; ++round) {
    computed_ = 0;
    memo_.StartRecording();
    EXPECT_EQ(follow(kHalf), "computed 1");
    EXPECT_EQ(follow(kHalf + 1), "computed 2");
    EXPECT_EQ(follow(kHalf), "computed 3");
    memo_.StartReplay();
    EXPECT_EQ(follow(kHalf), "computed 1");
    EXPECT_EQ(follow(kHalf + 1), "computed 4");
    EXPECT_EQ(follow(kHalf), "computed 3");
    EXPECT_THROW(follow(1), InternalError);
  }
}

TEST_F(LearnMemoTest, WithoutAMemoEverythingIsComputed) {
  EXPECT_NE(Fill(nullptr), Fill(nullptr));
  EXPECT_EQ(computed_, 2);
}

}  // namespace
}  // namespace codband
