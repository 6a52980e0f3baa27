// What is kept of items beside their sums, so that asking costs little, says what asking anew says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/item_effects.h"

namespace codband {
namespace {

constexpr std::size_t kRatedItems = 60;
constexpr ModelId kRatedGroups = 5;
constexpr UserId kRatedUsers = 12;

// Showings, moves, users and items who are forgotten, at random.
class ItemRatingTest : public testing::Test {
 protected:
  void Change() {
    const UserId id = random_.Below(kRatedUsers);
    ItemHistory& user = users_[id];
    ModelId& group = groups_[id];
    switch (random_.Below(40)) {
      case 0:
        effects_.Forget(user);
        user = {};
        break;
      case 1:
        effects_.ForgetItem(random_.Below(kRatedItems));
        break;
      case 2: {
        const ModelId to = random_.Below(kRatedGroups);
        effects_.Move(user, group, to);
        group = to;
        break;
      }
      case 3:
        effects_.TakeOutSince(user, 1 + random_.Below(5));
        break;
      default: {
        const ItemId item = random_.Below(kRatedItems);
        const double effect = static_cast<double>(item % 7) - 3;
        const ItemEffects::Share share{group, 1};
        effects_.Observe(user, item, group, 0.4 * effect + random_.Normal(), 1,
                         effects_.Of(item, {&share, 1}, &user));
      }
    }
  }

  RandomStream random_{{5, 0}, 610};
  ItemEffects effects_{true};
  std::map<UserId, ItemHistory> users_;
  std::map<UserId, ModelId> groups_;
};

void ExpectSameEffect(const ItemEffects::Effect& a, const ItemEffects::Effect& b) {
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.variance, b.variance);
  EXPECT_EQ(a.own, b.own);
  EXPECT_EQ(a.known, b.known);
  EXPECT_EQ(a.unlike, b.unlike);
  EXPECT_EQ(a.unlike_variance, b.unlike_variance);
}

// A restored copy has made all that is kept anew.
TEST_F(ItemRatingTest, WhatIsKeptIsWhatIsMadeAnew) {
  const std::vector<ItemEffects::Share> shares = {{0, 0.5}, {3, 0.25}};
  for (int i = 0; i < 6000; ++i) {
    Change();
    if (i % 100 != 0) continue;
    ByteWriter out;
    effects_.Save(out);
    ItemEffects restored(true);
    ByteReader in(out.bytes());
    restored.Load(in);
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    for (const auto& [id, user] : users_) {
      ByteWriter bytes;
      user.Save(bytes);
      ItemHistory again;
      ByteReader reader(bytes.bytes());
      again.Load(reader);
      for (ItemId item = 0; item < kRatedItems + 2; ++item) {
        ExpectSameEffect(effects_.Of(item, shares, &user), restored.Of(item, shares, &again));
      }
    }
  }
  EXPECT_GT(effects_.item_variance(), 0);
}

TEST_F(ItemRatingTest, RatingManyIsAskingOfEach) {
  const std::vector<ItemEffects::Share> shares = {{1, 0.6}, {2, 0.3}};
  std::vector<std::uint32_t> slots;
  std::vector<double> numbers;
  for (int i = 0; i < 4000; ++i) {
    Change();
    if (i % 40 != 0) continue;
    std::vector<ItemId> offer(1 + random_.Below(90));
    for (ItemId& item : offer)
      item = random_.Below(8) == 0 ? kNoItem : random_.Below(2 * kRatedItems);
    const std::size_t count = offer.size();
    numbers.assign(3 * count, -1);
    const std::span<double> all(numbers);
    const ItemEffects::Ratings ratings{.means = all.first(count),
                                       .variances = all.subspan(count, count),
                                       .scores = all.last(count)};
    const ItemHistory& user = users_[i % kRatedUsers];
    constexpr double kVisits = 300;
    effects_.Rate(offer, shares, &user, kVisits, slots, ratings);
    const auto known = std::ranges::count_if(
        offer, [&](ItemId item) { return effects_.Describe(item).has_value(); });
    const double offered = effects_.ShareOffered(static_cast<std::size_t>(known));
    for (std::size_t arm = 0; arm < count; ++arm) {
      ItemEffects::Effect effect;
      if (offer[arm] != kNoItem) effect = effects_.Of(offer[arm], shares, &user);
      EXPECT_EQ(ratings.means[arm], effect.mean);
      EXPECT_EQ(ratings.variances[arm], effect.variance);
      EXPECT_EQ(ratings.scores[arm],
                effect.mean + effects_.WorthOfTrying(effect, kVisits, offered));
    }
  }
}

TEST_F(ItemRatingTest, OneItemAskedForSeveralModelsIsWhatItIsOnEach) {
  for (int i = 0; i < 2000; ++i) Change();
  for (ItemId item = 0; item < kRatedItems + 2; ++item) {
    const ItemEffects::Asked asked = effects_.Ask(item);
    for (ModelId model = 0; model < kRatedGroups + 1; ++model) {
      const ItemEffects::Share share{model, 1};
      EXPECT_EQ(asked.MeanOn(model), effects_.Of(item, {&share, 1}).mean);
    }
  }
}

// The chance that an item is unlike the others may decide what trying it is worth, or not.
TEST_F(ItemRatingTest, TryingIsWorthTheLargerOfBoth) {
  for (int i = 0; i < 2000; ++i) Change();
  ItemEffects::Effect effect{.variance = 0.01, .unlike = 0, .unlike_variance = 1};
  const double usual = effects_.WorthOfTrying(effect, 1000, 1);
  std::size_t larger = 0;
  for (double chance = 1e-9; chance < 1; chance *= 1.3) {
    effect.unlike = chance;
    const ItemEffects::Effect wide{
        .variance = effect.unlike_variance, .unlike = 0, .unlike_variance = 0};
    const double unlike = effects_.WorthOfTrying(wide, 1000 * chance, 1);
    const double worth = effects_.WorthOfTrying(effect, 1000, 1);
    EXPECT_NEAR(worth, std::max(usual, unlike), 1e-12) << chance;
    larger += unlike > usual ? 1 : 0;
  }
  EXPECT_GT(larger, 5U);
}

TEST(ItemHistoryTest, FindsWhatIsThereAndNothingElse) {
  RandomStream random({6, 0}, 611);
  ItemHistory user;
  for (int step = 0; step < 12'000; ++step) {
    const std::size_t ids = step < 9000 ? 4000 : 100;
    if (random.Below(300) == 0) {
      static_cast<void>(user.TakeSince(random.Below(200)));
    } else {
      ItemHistory::Entry& entry = user.Touch(random.Below(ids), 1);
      entry.shown = 1;
      static_cast<void>(user.DropSurplus());
    }
    if (step % 200 != 0) continue;
    std::map<ItemId, const ItemHistory::Entry*> there;
    for (const ItemHistory::Entry& entry : std::as_const(user).entries()) {
      there[entry.item] = &entry;
    }
    for (ItemId item = 0; item < 4000; ++item) {
      const auto found = there.find(item);
      ASSERT_EQ(user.Find(item), found == there.end() ? nullptr : found->second) << item;
    }
  }
}

}  // namespace
}  // namespace codband
