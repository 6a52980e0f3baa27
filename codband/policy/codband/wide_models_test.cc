// CoDBand with more features than linalg::Covariance::kNarrow, most of which are 0 in an arm.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codband/linalg/covariance.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kArms = 12;
constexpr std::size_t kNames = 6;  // of an arm
constexpr UserId kUsers = 6;       // of two tastes

class WideShop {
 public:
  explicit WideShop(std::size_t dim) : dim_(dim), tastes_(2, std::vector<double>(dim)) {
    RandomStream random({11, dim}, 820);
    for (auto& taste : tastes_) random.FillNormal(taste);
  }

  std::vector<double> Arms(std::uint64_t event, std::size_t dim) const {
    RandomStream random({12, event}, 821);
    std::vector<double> arms(kArms * dim);
    for (std::size_t i = 0; i < kArms; ++i) {
      for (std::size_t name = 0; name < kNames; ++name) arms[i * dim + random.Below(dim)] = 1;
    }
    return arms;
  }

  // One visit, ranked and rewarded.
  Ranking Visit(Policy& policy, std::uint64_t event, LearnMemo* memo = nullptr) const {
    const UserId user = event % kUsers;
    const std::vector<double> arms = Arms(event, policy.dim());
    Ranking ranking;
    policy.Rank(user, {arms, policy.dim()}, {1, event}, 0.1, ranking);
    const auto& taste = tastes_[user % 2];
    const double mean =
        linalg::Dot(ranking.decision.features, std::span(taste).first(policy.dim()));
    policy.Learn(ranking.decision, mean + 0.3 * RandomStream({1, event}, 822).Normal(), {1, event},
                 memo);
    return ranking;
  }

 private:
  std::size_t dim_;
  std::vector<std::vector<double>> tastes_;
};

void ExpectSame(const Ranking& a, const Ranking& b) {
  ASSERT_EQ(a.arms.size(), b.arms.size());
  EXPECT_EQ(a.decision.arm, b.decision.arm);
  for (std::size_t i = 0; i < a.arms.size(); ++i) {
    EXPECT_EQ(a.arms[i].width, b.arms[i].width) << i;
    EXPECT_EQ(a.arms[i].score, b.arms[i].score) << i;
    EXPECT_EQ(a.arms[i].probability, b.arms[i].probability) << i;
  }
}

TEST(WideModelsTest, CopyThatReplaysTheMemoIsTheSame) {
  constexpr std::size_t kDim = 90;
  constexpr std::uint64_t kTogether = 30;
  const WideShop shop(kDim);
  const auto alone = MakeOrDie("codband", {.dim = kDim});
  const auto recording = MakeOrDie("codband", {.dim = kDim});
  const auto replaying = MakeOrDie("codband", {.dim = kDim});
  LearnMemo memo;
  for (std::uint64_t event = 0; event < 300; event += kTogether) {
    for (std::uint64_t i = event; i < event + kTogether; ++i) shop.Visit(*alone, i);
    memo.StartRecording();
    for (std::uint64_t i = event; i < event + kTogether; ++i) shop.Visit(*recording, i, &memo);
    memo.StartReplay();
    for (std::uint64_t i = event; i < event + kTogether; ++i) shop.Visit(*replaying, i, &memo);
    const std::string state = EncodeState(*alone);
    ASSERT_EQ(EncodeState(*recording), state);
    ASSERT_EQ(EncodeState(*replaying), state);
  }
}

TEST(WideModelsTest, RestartAtAnyTimeIsBitIdentical) {
  constexpr std::size_t kDim = 90;
  const WideShop shop(kDim);
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  std::uint64_t event = 0;
  for (int restarts = 0; restarts < 5; ++restarts) {
    for (int i = 0; i < 41; ++i) shop.Visit(*policy, event++);
    const auto restored = DecodeState(EncodeState(*policy), {.dim = kDim});
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    for (int i = 0; i < 20; ++i) {
      ExpectSame(shop.Visit(*policy, event), shop.Visit(*restored.value(), event));
      ++event;
    }
    EXPECT_EQ(EncodeState(*policy), EncodeState(*restored.value()));
  }
}

TEST(WideModelsTest, ModelsThatGrowBeyondTheNarrowRankAndLearnOn) {
  constexpr std::size_t kBefore = linalg::Covariance::kNarrow - 4;
  constexpr std::size_t kAfter = linalg::Covariance::kNarrow + 20;
  const WideShop shop(kAfter);
  const auto policy = MakeOrDie("codband", {.dim = kBefore});
  std::uint64_t event = 0;
  for (; event < 120; ++event) shop.Visit(*policy, event);
  for (std::size_t dim = kBefore; dim <= kAfter; dim += 4) {
    policy->Grow(dim);
    for (int i = 0; i < 12; ++i) shop.Visit(*policy, event++);
    const auto restored = DecodeState(EncodeState(*policy), {.dim = kBefore});
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    ExpectSame(shop.Visit(*policy, event), shop.Visit(*restored.value(), event));
    ++event;
  }
}

TEST(WideModelsTest, WidthsFallWithWhatIsKnown) {
  constexpr std::size_t kDim = 90;
  const WideShop shop(kDim);
  const auto policy = MakeOrDie("codband", {.dim = kDim});
  const std::vector<double> arms = shop.Arms(5, kDim);
  const auto mean_width = [&] {
    Ranking ranking;
    policy->Rank(0, {arms, kDim}, {2, 0}, 0, ranking);
    double sum = 0;
    for (const Ranking::Arm& arm : ranking.arms) sum += arm.width / kArms;
    return sum;
  };
  std::uint64_t event = 0;
  for (; event < 200; ++event) shop.Visit(*policy, event);
  const double some = mean_width();
  for (; event < 1200; ++event) shop.Visit(*policy, event);
  EXPECT_LT(mean_width(), 0.6 * some);
  EXPECT_GT(mean_width(), 0.01 * some);
}

}  // namespace
}  // namespace codband
