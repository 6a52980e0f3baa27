// Clicks of users of whom a third change at once: a shop of forty items with a category, a price, a
// brand and tags. Liked items are clicked with chance 0.6, others with 0.05.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "codband/policy/grouped_features.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kItems = 40;
constexpr std::size_t kCategories = 5;
constexpr std::size_t kBrands = 20;
constexpr std::size_t kTags = 12;
constexpr std::size_t kColumns = kCategories + 1 + kBrands + kTags;
constexpr UserId kShoppers = 30;
constexpr std::uint64_t kRounds = 200;
constexpr std::uint64_t kChangeRound = kRounds / 2;

struct Outcome {
  int changed = 0;
  int noticed = 0;
  int in_time = 0;  // within 30 visits
  int false_alarms = 0;
};

class Shop {
 public:
  // `priced`: a click earns the price.
  explicit Shop(std::uint64_t seed, bool priced = false)
      : seed_(seed),
        priced_(priced),
        policy_(MakeOrDie("codband", {.dim = kColumns})),
        rows_(kItems * kColumns) {
    RandomStream random({seed, 0}, 830);
    for (std::size_t i = 0; i < kItems; ++i) {
      double* const row = rows_.data() + i * kColumns;
      row[i % kCategories] = 1;
      row[kCategories] = 5 + 95 * random.Uniform();
      row[kCategories + 1 + random.Below(kBrands)] = 1;
      for (int tag = 0; tag < 2; ++tag) row[kCategories + 1 + kBrands + random.Below(kTags)] = 1;
      items_.push_back(1000 + i);
    }
    std::vector<std::uint32_t> groups(kColumns, 3);
    for (std::size_t j = 0; j < kCategories + 1 + kBrands; ++j) {
      groups[j] = j < kCategories ? 0 : j == kCategories ? 1 : 2;
    }
    dynamic_cast<GroupedFeatures&>(*policy_).SetGroups(groups);
  }

  Outcome Play(bool some_change) {
    Outcome outcome;
    std::vector<bool> told(kShoppers);
    for (std::uint64_t event = 0; event < kRounds * kShoppers; ++event) {
      const UserId user = event % kShoppers;
      const std::uint64_t round = event / kShoppers;
      const bool has_changed = some_change && user % 3 == 0 && round >= kChangeRound;
      // Tastes of three: users of all of them change, to either of the others.
      const std::size_t taste = (user / 3 + (has_changed ? 1 + user % 2 : 0)) % 3;
      if (!Visit(user, taste, event)) continue;
      if (!has_changed || told[user]) {
        ++outcome.false_alarms;
        continue;
      }
      told[user] = true;
      ++outcome.noticed;
      outcome.in_time += round < kChangeRound + 30 ? 1 : 0;
    }
    outcome.changed = some_change ? kShoppers / 3 : 0;
    return outcome;
  }

 private:
  bool Visit(UserId user, std::size_t taste, std::uint64_t event) {
    const EventKey key{seed_, event};
    policy_->Rank(user, {rows_, kColumns, items_}, key, 0.01, ranking_);
    const double chance = ranking_.decision.arm % kCategories == taste ? 0.6 : 0.05;
    const bool click = RandomStream(key, 831).Uniform() < chance;
    const double price = priced_ ? rows_[ranking_.decision.arm * kColumns + kCategories] : 1;
    return policy_->Learn(ranking_.decision, click ? price : 0, key).change_detected;
  }

  std::uint64_t seed_;
  bool priced_;
  std::unique_ptr<Policy> policy_;
  std::vector<double> rows_;
  std::vector<ItemId> items_;
  Ranking ranking_;
};

// Where what users alone think of items hid their tastes, some shops ended with one model for all
// of them, and 115 changes were noticed, 109 of them in time.
TEST(ClickChangesTest, MostAreNoticedAndFewOthersAreToldToHaveChanged) {
  Outcome all;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcome one = Shop(seed).Play(true);
    all.changed += one.changed;
    all.noticed += one.noticed;
    all.in_time += one.in_time;
    all.false_alarms += one.false_alarms;
  }
  EXPECT_GE(all.noticed, 117) << "of " << all.changed;
  EXPECT_GE(all.in_time, 114);
  EXPECT_LE(all.false_alarms, 14) << "in 72000 visits";
}

// With Gaussian noise none was noticed, and some thirty false alarms were raised in each shop.
TEST(ClickChangesTest, PurchasesTellOfChangesAsWell) {
  Outcome all;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Outcome one = Shop(seed, true).Play(true);
    all.changed += one.changed;
    all.noticed += one.noticed;
    all.false_alarms += one.false_alarms;
  }
  EXPECT_GE(all.noticed, 30) << "of " << all.changed;
  EXPECT_LE(all.false_alarms, 60) << "in 24000 visits";
}

TEST(ClickChangesTest, WhereNobodyChangesFewAreToldTo) {
  EXPECT_LE(Shop(4).Play(false).false_alarms, 2) << "in 6000 visits";
}

}  // namespace
}  // namespace codband
