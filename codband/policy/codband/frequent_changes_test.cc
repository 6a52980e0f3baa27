// Users who change again and again among tastes that the pool knows: a change is noticed as soon
// the twentieth time as the first. Items have a genre, a mood, a decade and an energy; tastes
// overlap, and a user who has changed is not always moved to the right group at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "codband/policy/grouped_features.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kSongGenres = 12;
constexpr std::size_t kSongMoods = 4;
constexpr std::size_t kSongDecades = 5;
constexpr std::size_t kSongColumns = kSongGenres + kSongMoods + kSongDecades + 1;
constexpr std::size_t kSongs = 300;
constexpr std::size_t kSongsOffered = 20;
constexpr std::size_t kListeners = 200;
constexpr UserId kMover = 0;               // who comes
constexpr std::uint64_t kMoverEvery = 12;  // visits
constexpr std::uint64_t kMoves = 20;
constexpr double kOthersChange = 0.002;

struct MusicTaste {
  std::array<std::size_t, 3> genres;
  std::size_t mood;
  std::size_t decade;
};
constexpr std::array<MusicTaste, 8> kMusicTastes = {{{{0, 8, 6}, 1, 0},
                                                     {{1, 7, 5}, 0, 1},
                                                     {{2, 6, 11}, 3, 3},
                                                     {{3, 9, 11}, 1, 2},
                                                     {{4, 7, 10}, 3, 4},
                                                     {{5, 9, 1}, 2, 0},
                                                     {{8, 3, 0}, 2, 3},
                                                     {{11, 10, 4}, 0, 4}}};

struct MoverKind {
  bool clicks;
  bool ids;
  std::uint64_t visits;  // of the mover on one taste
};

// Of the first and of the second half of the mover's changes.
struct HalfOfMoves {
  int noticed = 0;
  double visits = 0;  // that it took, in all

  double mean() const { return visits / std::max(noticed, 1); }
};

// What all users did over many visits.
struct StretchOfVisits {
  int changes = 0;  // true ones
  int noticed = 0;
  double reward = 0;  // on average
};

class MusicShop {
 public:
  MusicShop(std::uint64_t seed, MoverKind kind)
      : seed_(seed),
        kind_(kind),
        policy_(MakeOrDie("codband", {.dim = kSongColumns})),
        items_(kSongs * kSongColumns),
        tastes_(kListeners) {
    RandomStream random({seed, 0}, 840);
    for (std::size_t i = 0; i < kSongs; ++i) {
      double* const row = items_.data() + i * kSongColumns;
      row[random.Below(kSongGenres)] = 1;
      double& other = row[random.Below(kSongGenres)];
      if (other == 0 && random.Uniform() < 0.4) other = 0.5;
      row[kSongGenres + random.Below(kSongMoods)] = 0.5;
      row[kSongGenres + kSongMoods + random.Below(kSongDecades)] = 0.5;
      row[kSongColumns - 1] = random.Uniform();
    }
    // Some tastes are more common than others.
    for (std::size_t& taste : tastes_) {
      taste = std::min(random.Below(kMusicTastes.size()), random.Below(kMusicTastes.size()));
    }
    std::vector<std::uint32_t> groups(kSongColumns, 3);
    for (std::size_t j = 0; j + 1 < kSongColumns; ++j) {
      groups[j] = j < kSongGenres ? 0 : j < kSongGenres + kSongMoods ? 1 : 2;
    }
    dynamic_cast<GroupedFeatures&>(*policy_).SetGroups(groups);
  }

  std::array<HalfOfMoves, 2> Play() {
    std::array<HalfOfMoves, 2> halves;
    bool open = false;
    const std::uint64_t end = (kMoves + 1) * kind_.visits;
    while (mover_visits_ + 1 < end) {
      const Happened happened = Next();
      if (happened.user != kMover) continue;
      open |= happened.changed;
      if (!happened.noticed || !open) continue;
      open = false;
      HalfOfMoves& half = halves[mover_visits_ / kind_.visits > kMoves / 2 ? 1 : 0];
      ++half.noticed;
      half.visits += static_cast<double>(mover_visits_ % kind_.visits + 1);
    }
    return halves;
  }

  StretchOfVisits PlayFor(int visits) {
    StretchOfVisits all;
    for (int i = 0; i < visits; ++i) {
      const Happened happened = Next();
      all.changes += happened.changed ? 1 : 0;
      all.noticed += happened.noticed ? 1 : 0;
      all.reward += happened.reward / visits;
    }
    return all;
  }

 private:
  struct Happened {
    UserId user = kMover;
    bool changed = false;  // before the visit
    bool noticed = false;
    double reward = 0;
  };

  Happened Next() {
    const std::uint64_t event = ++event_;
    RandomStream random({seed_, event}, 841);
    Happened happened;
    if (event % kMoverEvery != 0) {
      happened.user = kMover + 1 + random.Below(kListeners - 1);
      happened.changed = random.Uniform() < kOthersChange;
    } else {
      happened.changed = ++mover_visits_ % kind_.visits == 0;
    }
    if (happened.changed) Change(happened.user, random);
    happened.noticed = Visit(happened.user, event, random, happened.reward);
    return happened;
  }

  void Change(UserId user, RandomStream& random) {
    tastes_[user] =
        (tastes_[user] + 1 + random.Below(kMusicTastes.size() - 1)) % kMusicTastes.size();
  }

  bool Visit(UserId user, std::uint64_t event, RandomStream& random, double& reward) {
    rows_.clear();
    ids_.clear();
    while (ids_.size() < kSongsOffered) {
      const std::size_t item = random.Below(kSongs);
      if (std::ranges::count(ids_, item) > 0) continue;
      ids_.push_back(item);
      const auto row = items_.begin() + static_cast<std::ptrdiff_t>(item * kSongColumns);
      rows_.insert(rows_.end(), row, row + kSongColumns);
    }
    const EventKey key{seed_, event};
    ArmsView arms{rows_, kSongColumns};
    if (kind_.ids) arms.items = ids_;
    policy_->Rank(user, arms, key, 0.01, ranking_);
    const double chance = Chance(kMusicTastes[tastes_[user]], arms.arm(ranking_.decision.arm));
    RandomStream noise(key, 842);
    reward = kind_.clicks ? (noise.Uniform() < chance ? 1.0 : 0.0) : chance + 0.1 * noise.Normal();
    return policy_->Learn(ranking_.decision, reward, key).change_detected;
  }

  static double Chance(const MusicTaste& taste, std::span<const double> x) {
    const double genres =
        0.6 * x[taste.genres[0]] + 0.35 * x[taste.genres[1]] + 0.2 * x[taste.genres[2]];
    const double rest =
        0.2 * x[kSongGenres + taste.mood] + 0.2 * x[kSongGenres + kSongMoods + taste.decade];
    return std::min(0.03 + genres + rest, 0.95);
  }

  std::uint64_t seed_;
  MoverKind kind_;
  std::uint64_t event_ = 0;
  std::uint64_t mover_visits_ = 0;
  std::unique_ptr<Policy> policy_;
  std::vector<double> items_;
  std::vector<std::size_t> tastes_;
  std::vector<double> rows_;
  std::vector<ItemId> ids_;
  Ranking ranking_;
};

class MoverTest : public testing::TestWithParam<MoverKind> {};

TEST_P(MoverTest, TheLastAreNoticedAsSoonAsTheFirst) {
  const auto [first, last] = MusicShop(3, GetParam()).Play();
  EXPECT_GE(first.noticed, 9) << "of 10";
  EXPECT_GE(last.noticed, 9) << "of 10";
  EXPECT_LE(last.mean(), 1.5 * first.mean() + 2) << "visits";
}

// While a pool forms, many seem to change at once. False alarms of that time must not make the
// policy so cautious that it notices nobody any more.
TEST(FrequentChangesTest, AShopThatIsOpenForLongGoesOnNoticing) {
  for (const std::uint64_t seed : {1, 4}) {
    MusicShop shop(seed, {.clicks = true, .ids = true, .visits = 400});
    shop.PlayFor(20'000);
    const StretchOfVisits early = shop.PlayFor(20'000);
    shop.PlayFor(30'000);
    const StretchOfVisits late = shop.PlayFor(20'000);
    EXPECT_GE(late.noticed, 0.75 * late.changes) << "seed " << seed << ", of " << late.changes;
    EXPECT_LE(late.noticed, 1.5 * late.changes) << "seed " << seed << ", of " << late.changes;
    EXPECT_GE(late.reward, 0.97 * early.reward) << "seed " << seed;
  }
}

// Clicks with ids take long: what items are to a group must not come to hide changes.
INSTANTIATE_TEST_SUITE_P(All, MoverTest,
                         testing::Values(MoverKind{true, true, 400}, MoverKind{true, false, 200},
                                         MoverKind{false, true, 100},
                                         MoverKind{false, false, 100}));

}  // namespace
}  // namespace codband
