// Users who change again and again among tastes that the pool knows: a change is noticed as soon
// the twentieth time as the first. Items have a genre, a mood, a decade and an energy; tastes
// overlap, and a user who has changed is not always moved to the right group at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "codband/policy/grouped_features.h"
#include "codband/policy/test_support.h"

namespace codband::frequent_changes {
namespace {

constexpr std::size_t kGenres = 12;
constexpr std::size_t kMoods = 4;
constexpr std::size_t kDecades = 5;
constexpr std::size_t kColumns = kGenres + kMoods + kDecades + 1;
constexpr std::size_t kItems = 300;
constexpr std::size_t kOffer = 20;
constexpr std::size_t kUsers = 200;
constexpr UserId kMover = 0;               // who comes
constexpr std::uint64_t kMoverEvery = 12;  // visits
constexpr std::uint64_t kChanges = 20;
constexpr double kOthersChange = 0.002;

struct Taste {
  std::array<std::size_t, 3> genres;
  std::size_t mood;
  std::size_t decade;
};
constexpr std::array<Taste, 8> kTastes = {{{{0, 8, 6}, 1, 0},
                                           {{1, 7, 5}, 0, 1},
                                           {{2, 6, 11}, 3, 3},
                                           {{3, 9, 11}, 1, 2},
                                           {{4, 7, 10}, 3, 4},
                                           {{5, 9, 1}, 2, 0},
                                           {{8, 3, 0}, 2, 3},
                                           {{11, 10, 4}, 0, 4}}};

struct Kind {
  bool clicks;
  bool ids;
  std::uint64_t visits;  // of the mover on one taste
};

// Of the first and of the second half of the mover's changes.
struct Half {
  int noticed = 0;
  double visits = 0;  // that it took, in all

  double mean() const { return visits / std::max(noticed, 1); }
};

class Shop {
 public:
  Shop(std::uint64_t seed, Kind kind)
      : seed_(seed),
        kind_(kind),
        policy_(MakeOrDie("codband", {.dim = kColumns})),
        items_(kItems * kColumns),
        tastes_(kUsers) {
    RandomStream random({seed, 0}, 840);
    for (std::size_t i = 0; i < kItems; ++i) {
      double* const row = items_.data() + i * kColumns;
      row[random.Below(kGenres)] = 1;
      double& other = row[random.Below(kGenres)];
      if (other == 0 && random.Uniform() < 0.4) other = 0.5;
      row[kGenres + random.Below(kMoods)] = 0.5;
      row[kGenres + kMoods + random.Below(kDecades)] = 0.5;
      row[kColumns - 1] = random.Uniform();
    }
    // Some tastes are more common than others.
    for (std::size_t& taste : tastes_) {
      taste = std::min(random.Below(kTastes.size()), random.Below(kTastes.size()));
    }
    std::vector<std::uint32_t> groups(kColumns, 3);
    for (std::size_t j = 0; j + 1 < kColumns; ++j) {
      groups[j] = j < kGenres ? 0 : j < kGenres + kMoods ? 1 : 2;
    }
    dynamic_cast<GroupedFeatures&>(*policy_).SetGroups(groups);
  }

  std::array<Half, 2> Play() {
    std::array<Half, 2> halves;
    bool open = false;
    std::uint64_t visits = 0;
    const std::uint64_t end = (kChanges + 1) * kind_.visits;
    for (std::uint64_t event = 1; visits + 1 < end; ++event) {
      RandomStream random({seed_, event}, 841);
      if (event % kMoverEvery != 0) {
        const UserId user = kMover + 1 + random.Below(kUsers - 1);
        if (random.Uniform() < kOthersChange) Change(user, random);
        Visit(user, event, random);
        continue;
      }
      if (++visits % kind_.visits == 0) {
        Change(kMover, random);
        open = true;
      }
      if (!Visit(kMover, event, random) || !open) continue;
      open = false;
      Half& half = halves[visits / kind_.visits > kChanges / 2 ? 1 : 0];
      ++half.noticed;
      half.visits += static_cast<double>(visits % kind_.visits + 1);
    }
    return halves;
  }

 private:
  void Change(UserId user, RandomStream& random) {
    tastes_[user] = (tastes_[user] + 1 + random.Below(kTastes.size() - 1)) % kTastes.size();
  }

  bool Visit(UserId user, std::uint64_t event, RandomStream& random) {
    rows_.clear();
    ids_.clear();
    while (ids_.size() < kOffer) {
      const std::size_t item = random.Below(kItems);
      if (std::ranges::count(ids_, item) > 0) continue;
      ids_.push_back(item);
      const auto row = items_.begin() + static_cast<std::ptrdiff_t>(item * kColumns);
      rows_.insert(rows_.end(), row, row + kColumns);
    }
    const EventKey key{seed_, event};
    ArmsView arms{rows_, kColumns};
    if (kind_.ids) arms.items = ids_;
    policy_->Rank(user, arms, key, 0.01, ranking_);
    const double chance = Chance(kTastes[tastes_[user]], arms.arm(ranking_.decision.arm));
    RandomStream noise(key, 842);
    const double reward =
        kind_.clicks ? (noise.Uniform() < chance ? 1.0 : 0.0) : chance + 0.1 * noise.Normal();
    return policy_->Learn(ranking_.decision, reward, key).change_detected;
  }

  static double Chance(const Taste& taste, std::span<const double> x) {
    const double genres =
        0.6 * x[taste.genres[0]] + 0.35 * x[taste.genres[1]] + 0.2 * x[taste.genres[2]];
    const double rest = 0.2 * x[kGenres + taste.mood] + 0.2 * x[kGenres + kMoods + taste.decade];
    return std::min(0.03 + genres + rest, 0.95);
  }

  std::uint64_t seed_;
  Kind kind_;
  std::unique_ptr<Policy> policy_;
  std::vector<double> items_;
  std::vector<std::size_t> tastes_;
  std::vector<double> rows_;
  std::vector<ItemId> ids_;
  Ranking ranking_;
};

class FrequentChangesTest : public testing::TestWithParam<Kind> {};

TEST_P(FrequentChangesTest, TheLastAreNoticedAsSoonAsTheFirst) {
  const auto [first, last] = Shop(3, GetParam()).Play();
  EXPECT_GE(first.noticed, 9) << "of 10";
  EXPECT_GE(last.noticed, 9) << "of 10";
  EXPECT_LE(last.mean(), 1.5 * first.mean() + 2) << "visits";
}

// Clicks with ids take long: what items are to a group must not come to hide changes.
INSTANTIATE_TEST_SUITE_P(All, FrequentChangesTest,
                         testing::Values(Kind{true, true, 400}, Kind{true, false, 200},
                                         Kind{false, true, 100}, Kind{false, false, 100}));

}  // namespace
}  // namespace codband::frequent_changes
