#include "codband/eval/logged_decisions.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace codband::eval {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class LoggedDecisionsTest : public testing::Test {
 protected:
  Status Add() { return log_.Add(event_, {actions_, features_, probabilities_}); }
  std::string Error() {
    const Status status = Add();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(log_.size(), 0u);
    return status.message();
  }

  LoggedDecisions log_{2};
  LoggedEvent event_{.chosen = 1, .propensity = 0.25, .reward = 1};
  std::vector<std::uint32_t> actions_ = {4, 5};
  std::vector<double> features_ = {1, 2, 3, 4};
  std::vector<double> probabilities_ = {0.75, 0.25};
};

TEST_F(LoggedDecisionsTest, KeepsWhatWasAdded) {
  ASSERT_TRUE(Add().ok());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_.event(0).propensity, 0.25);
  EXPECT_EQ(log_.actions(0)[1], 5u);
  EXPECT_EQ(log_.arms(0).arm(1)[0], 3);
  EXPECT_EQ(log_.probabilities(0)[0], 0.75);
}

TEST_F(LoggedDecisionsTest, OffersThatDifferAreKeptApart) {
  ASSERT_TRUE(Add().ok());
  ASSERT_TRUE(Add().ok());
  features_[3] = 5;
  probabilities_.clear();
  ASSERT_TRUE(Add().ok());
  EXPECT_EQ(log_.arms(1).features.data(), log_.arms(0).features.data());
  EXPECT_EQ(log_.arms(1).arm(1)[1], 4);
  EXPECT_EQ(log_.arms(2).arm(1)[1], 5);
  EXPECT_TRUE(log_.probabilities(2).empty());
  EXPECT_EQ(log_.probabilities(1).size(), 2u);
}

TEST_F(LoggedDecisionsTest, RejectsPropensitiesThatAreNone) {
  for (const double bad : {0.0, -0.5, 1.5, 1e-300, kNotANumber}) {
    event_.propensity = bad;
    EXPECT_EQ(Error().rfind("propensity = ", 0), 0u) << bad;
  }
}

TEST_F(LoggedDecisionsTest, RejectsOtherNumbersThatAreWrong) {
  event_.reward = kNotANumber;
  EXPECT_EQ(Error(), "reward = nan, expected a number within ±1e15");
  event_.reward = 1;
  features_[3] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Error(), "feature 1 of candidate 1 = inf, expected a number within ±1e15");
  features_[3] = 4;
  event_.chosen = 2;
  EXPECT_EQ(Error(), "chosen = 2, expected an index below 2 (candidates)");
}

TEST_F(LoggedDecisionsTest, RejectsProbabilitiesThatContradict) {
  probabilities_ = {0.85, 0.25};
  EXPECT_EQ(Error(), "sum of the probabilities = 1.1, expected 1");
  probabilities_ = {1.25, -0.25};
  EXPECT_EQ(Error(), "probability of candidate 0 = 1.25, expected a number from 0 to 1");
  probabilities_ = {0.5, 0.5};
  EXPECT_EQ(Error(), "propensity = 0.25, expected 0.5, the probability of the chosen candidate");
  probabilities_ = {1};
  EXPECT_EQ(Error(), "1 probabilities, expected 2 (candidates)");
}

TEST_F(LoggedDecisionsTest, SortsByTimeAndKeepsTheOrderOfEqualTimes) {
  for (const auto& [time, user] : {std::pair{5, 1}, {3, 2}, {5, 3}, {3, 4}}) {
    event_.time_ms = time;
    event_.user = static_cast<UserId>(user);
    ASSERT_TRUE(Add().ok());
  }
  log_.SortByTime();
  std::vector<UserId> users;
  for (std::size_t i = 0; i < 4; ++i) users.push_back(log_.event(i).user);
  EXPECT_EQ(users, (std::vector<UserId>{2, 4, 1, 3}));
}

}  // namespace
}  // namespace codband::eval
