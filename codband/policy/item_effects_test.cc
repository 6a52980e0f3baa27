#include "codband/policy/item_effects.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <map>

#include "codband/base/random.h"

namespace codband {
namespace {

// A showing of an item to a user of a group.
struct Showing {
  UserId user;
  ModelId group;
  ItemId item;
  double residual;
};

// Users who are each in one group, u mod 3; effects of items and of items in groups, and noise 1.
std::vector<Showing> DrawShowings(std::uint64_t seed, std::size_t count, std::size_t items,
                                  double item_deviation, double group_deviation) {
  RandomStream random({seed, 0}, 600);
  std::vector<double> own(items);
  std::vector<double> of_group(3 * items);
  random.FillNormal(own);
  random.FillNormal(of_group);
  std::vector<Showing> out;
  for (std::size_t i = 0; i < count; ++i) {
    const UserId user = random.Below(9);
    const ItemId item = random.Below(items);
    out.push_back({.user = user,
                   .group = user % 3,
                   .item = item,
                   .residual = item_deviation * own[item] +
                               group_deviation * of_group[3 * item + user % 3] + random.Normal()});
  }
  return out;
}

class ItemEffectsTest : public testing::Test {
 protected:
  void Learn(const std::vector<Showing>& showings) {
    for (const Showing& each : showings) Learn(each);
  }
  void Learn(const Showing& each) {
    effects_.Observe(users_[each.user], each.item, each.group, each.residual, 1, {});
  }
  ItemEffects::Effect Of(ItemId item, ModelId group) const {
    const ItemEffects::Share share{group, 1};
    return effects_.Of(item, {&share, 1});
  }

  ItemEffects effects_{true};
  std::map<UserId, ItemHistory> users_;
};

// Users who like some items and not others, whatever others say of them.
TEST_F(ItemEffectsTest, WhatAUserBroughtIsExpectedOfThemAgain) {
  RandomStream random({7, 0}, 601);
  constexpr std::size_t kItems = 30;
  std::vector<double> tastes(9 * kItems);
  random.FillNormal(tastes);
  double square = 0;
  double explained = 0;
  for (int i = 0; i < 20'000; ++i) {
    const UserId user = random.Below(9);
    const ItemId item = random.Below(kItems);
    const double taste = 0.5 * tastes[user * kItems + item];
    const ItemEffects::Share share{user % 3, 1};
    const ItemEffects::Effect expected = effects_.Of(item, {&share, 1}, &users_[user]);
    EXPECT_EQ(effects_.Of(item, {&share, 1}).own, 0);
    if (i > 15'000) {
      square += taste * taste;
      explained += (taste - expected.mean) * (taste - expected.mean);
    }
    effects_.Observe(users_[user], item, user % 3, taste + random.Normal(), 1, expected);
  }
  // About 65 showings each: of a taste of variance 1/4 beside a noise of 1 a sixteenth is left.
  EXPECT_LT(explained, 0.12 * square);

  // Without any such taste nothing is expected.
  ItemEffects none(true);
  std::map<UserId, ItemHistory> users;
  double largest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const UserId user = random.Below(9);
    const ItemId item = random.Below(kItems);
    const ItemEffects::Share share{user % 3, 1};
    const ItemEffects::Effect expected = none.Of(item, {&share, 1}, &users[user]);
    if (i > 15'000) largest = std::max(largest, std::abs(expected.own));
    none.Observe(users[user], item, user % 3, random.Normal(), 1, expected);
  }
  EXPECT_LT(largest, 0.1);
}

TEST_F(ItemEffectsTest, ForgettingTakesOutWhatWasTheUsersOwn) {
  std::vector<Showing> showings = DrawShowings(8, 600, 5, 1, 1);
  const auto learn = [](ItemEffects& effects, std::map<UserId, ItemHistory>& users,
                        const Showing& each) {
    const ItemEffects::Share share{each.group, 1};
    effects.Observe(users[each.user], each.item, each.group, each.residual, 1,
                    effects.Of(each.item, {&share, 1}, &users[each.user]));
  };
  for (const Showing& each : showings) learn(effects_, users_, each);
  for (UserId user = 0; user < 8; ++user) effects_.Forget(users_[user]);
  ASSERT_GT(effects_.size(), 0U);
  for (ItemId item = 0; item < 5; ++item) effects_.ForgetItem(item);
  ByteWriter out;
  effects_.SaveEstimates(out);
  // The last two numbers, the sums of all that was the users' own, are 0 but for rounding.
  ByteReader in(std::string_view(out.bytes()).substr(out.bytes().size() - 16));
  EXPECT_NEAR(in.Double("products"), 0, 1e-3);
  EXPECT_NEAR(in.Double("squares"), 0, 1e-3);
}

// What is expected of one item in a group, by the joint Gaussian of the item's residuals where it
// is like the others and where it is not, each counting by its evidence.
ItemEffects::Effect Dense(const ItemEffects& effects, const std::vector<Showing>& all, ItemId item,
                          ModelId group) {
  std::vector<Showing> showings;
  for (const Showing& each : all) {
    if (each.item == item) showings.push_back(each);
  }
  const double noise = effects.noise_variance();
  const double unlike = 1 / static_cast<double>(effects.size() + 2);
  const auto n = static_cast<Eigen::Index>(showings.size());
  const auto at = [&](Eigen::Index i) { return showings[static_cast<std::size_t>(i)]; };
  Eigen::VectorXd residuals(n);
  for (Eigen::Index i = 0; i < n; ++i) residuals[i] = at(i).residual;
  double total = 0;
  double mean = 0;
  double square = 0;
  for (const bool is_unlike : {false, true}) {
    const auto shared = [&](ModelId a, ModelId b) {
      return (is_unlike ? noise : effects.item_variance()) +
             (a == b ? effects.group_variance() : 0);
    };
    Eigen::MatrixXd covariance = noise * Eigen::MatrixXd::Identity(n, n);
    Eigen::VectorXd with_next(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      with_next[i] = shared(at(i).group, group);
      for (Eigen::Index j = 0; j < n; ++j) covariance(i, j) += shared(at(i).group, at(j).group);
    }
    const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
    const Eigen::MatrixXd lower = factor.matrixL();
    const double weight =
        (is_unlike ? unlike : 1 - unlike) * std::exp(-lower.diagonal().array().log().sum() -
                                                     0.5 * residuals.dot(factor.solve(residuals)));
    const double expected = with_next.dot(factor.solve(residuals));
    const double variance = shared(group, group) - with_next.dot(factor.solve(with_next));
    total += weight;
    mean += weight * expected;
    square += weight * (variance + expected * expected);
  }
  mean /= total;
  return {.mean = mean, .variance = square / total - mean * mean};
}

TEST_F(ItemEffectsTest, PosteriorIsThatOfADenseComputation) {
  std::vector<Showing> showings = DrawShowings(1, 120, 7, 1, 0.7);
  // One that is unlike the others.
  for (UserId user = 0; user < 8; ++user) {
    showings.push_back({.user = user, .group = user % 3, .item = 7, .residual = 6});
  }
  Learn(showings);
  ASSERT_GT(effects_.item_variance(), 0);
  ASSERT_GT(effects_.group_variance(), 0);
  for (ItemId item = 0; item < 9; ++item) {
    for (ModelId group = 0; group < 4; ++group) {  // the last ones have not been seen
      const ItemEffects::Effect dense = Dense(effects_, showings, item, group);
      EXPECT_NEAR(Of(item, group).mean, dense.mean, 1e-9);
      EXPECT_NEAR(Of(item, group).variance, dense.variance, 1e-9);
    }
  }
}

TEST_F(ItemEffectsTest, AnItemUnlikeTheOthersIsBelievedSooner) {
  Learn(DrawShowings(14, 2000, 20, 0.15, 0));
  const double usual = effects_.item_variance() / effects_.noise_variance();
  for (UserId user = 0; user < 8; ++user) {
    Learn({.user = user, .group = user % 3, .item = 99, .residual = 3});
  }
  EXPECT_GT(Of(99, 0).mean, 2);
  EXPECT_LT(3 * 8 * usual / (1 + 8 * usual), 1);  // what it would be if it were like the others
}

TEST_F(ItemEffectsTest, AUserWhoMayBeOnSeveralModelsGetsTheirMean) {
  Learn(DrawShowings(2, 200, 5, 1, 1));
  const std::vector<ItemEffects::Share> shares = {{0, 0.25}, {1, 0.75}};
  EXPECT_NEAR(effects_.Of(3, shares).mean, 0.25 * Of(3, 0).mean + 0.75 * Of(3, 1).mean, 1e-12);
}

TEST_F(ItemEffectsTest, VariancesAreLearned) {
  Learn(DrawShowings(3, 6000, 200, 0.5, 0));
  EXPECT_NEAR(std::log2(effects_.item_variance() / 0.25), 0, 1);
  EXPECT_LT(effects_.group_variance(), 0.02);
  EXPECT_NEAR(effects_.noise_variance(), 1, 0.1);
}

TEST_F(ItemEffectsTest, VariancesThatAreGivenStay) {
  effects_ = ItemEffects::WithRatios({.item = 0.3, .group = 0.05});
  const std::vector<Showing> showings = DrawShowings(3, 600, 20, 1, 0);
  Learn(showings);
  EXPECT_NEAR(effects_.group_variance(), 0.05 * effects_.noise_variance(), 1e-12);
  EXPECT_NEAR(Of(3, 1).mean, Dense(effects_, showings, 3, 1).mean, 1e-9);
  for (const auto& [id, user] : users_) effects_.Forget(user);
  ASSERT_EQ(effects_.size(), 0U);
  users_.clear();
  Learn(showings);
  EXPECT_NEAR(effects_.item_variance(), 0.3 * effects_.noise_variance(), 1e-12);
}

TEST_F(ItemEffectsTest, AGroupsFavouritesAreLearned) {
  Learn(DrawShowings(4, 6000, 100, 0, 0.5));
  EXPECT_NEAR(std::log2(effects_.group_variance() / 0.25), 0, 1);
  EXPECT_LT(effects_.item_variance(), 0.05);
}

TEST_F(ItemEffectsTest, WhereThereIsNoneNothingIsSaidOfAnItem) {
  Learn(DrawShowings(5, 20000, 100, 0, 0));
  EXPECT_LE(effects_.item_variance(), 0.002);
  EXPECT_LE(effects_.group_variance(), 0.002);
  for (ItemId item = 0; item < 100; ++item) EXPECT_NEAR(Of(item, 0).mean, 0, 0.15);
}

TEST_F(ItemEffectsTest, WhoIsForgottenLeavesNoTrace) {
  const std::vector<Showing> showings = DrawShowings(6, 800, 30, 1, 0.5);
  Learn(showings);
  ItemEffects without(true);
  std::map<UserId, ItemHistory> others;
  for (const Showing& each : showings) {
    if (each.user == 4) continue;
    without.Observe(others[each.user], each.item, each.group, each.residual, 1, {});
  }
  // Both estimate anew.
  ItemHistory nobody;
  without.Observe(nobody, 1000, 0, 0.3, 1, {});
  without.Forget(nobody);
  effects_.Forget(users_[4]);
  EXPECT_EQ(effects_.showings(), without.showings());
  EXPECT_NEAR(effects_.noise_variance(), without.noise_variance(), 1e-6);
  for (ItemId item = 0; item < 30; ++item) {
    const ItemEffects::Share share{1, 1};
    EXPECT_NEAR(Of(item, 1).mean, without.Of(item, {&share, 1}).mean, 1e-6);
    EXPECT_EQ(effects_.Describe(item)->shown, without.Describe(item)->shown);
  }
}

TEST_F(ItemEffectsTest, AllForgottenIsAsNew) {
  Learn(DrawShowings(7, 300, 10, 1, 0));
  for (auto& [user, history] : users_) effects_.Forget(history);
  EXPECT_EQ(effects_.size(), 0U);
  EXPECT_EQ(effects_.showings(), 0U);
  EXPECT_EQ(effects_.noise_variance(), 0);
  EXPECT_EQ(Of(3, 0).variance, 0);
}

TEST_F(ItemEffectsTest, AnItemThatComesAgainIsNew) {
  Learn(DrawShowings(8, 400, 10, 1, 0));
  EXPECT_TRUE(effects_.ForgetItem(3));
  EXPECT_FALSE(effects_.ForgetItem(3));
  EXPECT_EQ(Of(3, 0).mean, 0);
  EXPECT_FALSE(effects_.Describe(3).has_value());
  Learn(Showing{.user = 8, .group = 2, .item = 3, .residual = 2});
  EXPECT_EQ(effects_.Describe(3)->shown, 1U);
  effects_.Forget(users_[0]);  // who saw the one that was there before
  EXPECT_EQ(effects_.Describe(3)->shown, 1U);
  effects_.Forget(users_[8]);
  EXPECT_FALSE(effects_.Describe(3).has_value());
}

TEST_F(ItemEffectsTest, AUsersPartFollowsThemToAnotherGroup) {
  std::vector<Showing> showings = DrawShowings(9, 300, 10, 0.5, 1);
  Learn(showings);
  effects_.Move(users_[0], 0, 1);
  ItemEffects moved(true);
  std::map<UserId, ItemHistory> users;
  for (Showing& each : showings) {
    if (each.user == 0) each.group = 1;
    moved.Observe(users[each.user], each.item, each.group, each.residual, 1, {});
  }
  // Both estimate anew.
  for (ItemEffects* effects : {&effects_, &moved}) {
    ItemHistory nobody;
    effects->Observe(nobody, 1000, 0, 0.3, 1, {});
    effects->Forget(nobody);
  }
  const ItemEffects::Share share{1, 1};
  for (ItemId item = 0; item < 10; ++item) {
    EXPECT_NEAR(Of(item, 1).mean, moved.Of(item, {&share, 1}).mean, 1e-9);
  }
}

TEST_F(ItemEffectsTest, WhatWasShownAfterAChangeIsTakenOut) {
  Learn(DrawShowings(11, 300, 10, 0.5, 1));
  const ItemEffects::Effect before = Of(3, 0);
  const std::uint64_t showings = effects_.showings();
  ItemHistory user;
  effects_.Observe(user, 7, 0, 0.2, 1, {});
  const double of_seven = Of(7, 0).mean;
  for (int i = 0; i < 4; ++i) effects_.Observe(user, 3, 0, -3, 0, {});
  EXPECT_LT(Of(3, 0).mean, before.mean - 0.1);
  effects_.TakeOutSince(user, 4);
  EXPECT_NEAR(Of(3, 0).mean, before.mean, 1e-9);
  EXPECT_NEAR(Of(7, 0).mean, of_seven, 1e-9);
  EXPECT_EQ(effects_.showings(), showings + 1);
  ASSERT_EQ(user.entries().size(), 1U);
  EXPECT_EQ(user.entries()[0].item, 7U);
}

TEST_F(ItemEffectsTest, RestoredItGoesOnToTheBit) {
  const std::vector<Showing> showings = DrawShowings(10, 600, 20, 1, 0.5);
  Learn({showings.begin(), showings.begin() + 300});
  ByteWriter out;
  effects_.Save(out);
  ItemEffects restored(true);
  ByteReader in(out.bytes());
  restored.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  std::map<UserId, ItemHistory> users;
  for (const auto& [user, history] : users_) {
    ByteWriter bytes;
    history.Save(bytes);
    ByteReader reader(bytes.bytes());
    users[user].Load(reader);
    reader.ExpectEnd();
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  }
  for (std::size_t i = 300; i < showings.size(); ++i) {
    const Showing& each = showings[i];
    restored.Observe(users[each.user], each.item, each.group, each.residual, 1, {});
    Learn(each);
  }
  ByteWriter a;
  ByteWriter b;
  effects_.Save(a);
  restored.Save(b);
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST_F(ItemEffectsTest, DamageIsFound) {
  Learn(DrawShowings(11, 100, 5, 1, 0.5));
  ByteWriter out;
  effects_.Save(out);
  ItemEffects::Tally tally(effects_);
  for (const auto& [user, history] : users_) {
    if (user != 3) tally.Add(history);
  }
  EXPECT_NE(tally.Fault(), "");
  tally.Add(users_[3]);
  EXPECT_EQ(tally.Fault(), "");
  for (std::size_t length = 0; length < out.bytes().size(); ++length) {
    ByteReader in(std::string_view(out.bytes()).substr(0, length));
    ItemEffects(true).Load(in);
    in.ExpectEnd();
    EXPECT_FALSE(in.ok()) << length;
  }
}

TEST_F(ItemEffectsTest, AUserIsFollowedOnABoundedNumberOfItems) {
  ItemHistory user;
  for (ItemId item = 0; item < ItemHistory::kMostItems + 10; ++item) {
    effects_.Observe(user, item, 0, 0.1, 1, {});
  }
  EXPECT_EQ(user.entries().size(), ItemHistory::kMostItems);
  EXPECT_EQ(effects_.size(), ItemHistory::kMostItems);
  EXPECT_FALSE(effects_.Describe(0).has_value());  // shown longest ago
  EXPECT_TRUE(effects_.Describe(ItemHistory::kMostItems).has_value());
}

TEST_F(ItemEffectsTest, IdsThatAreMadeUpDisplaceEachOtherAndNoItemThatIsShown) {
  constexpr std::size_t kMost = 256;
  constexpr ItemId kItems = 40;
  constexpr ItemId kMadeUp = 1'000'000;
  ItemEffects effects(true, kMost);
  ItemHistory user;
  for (int showing = 0; showing < 3; ++showing) {
    for (ItemId item = 0; item < kItems; ++item) effects.Observe(user, item, 0, 1, 1, {});
  }
  std::map<UserId, ItemHistory> attackers;
  for (ItemId i = 0; i < 20'000; ++i) {
    effects.Observe(attackers[i / 500], kMadeUp + i, 0, 1, 1, {});
    ASSERT_LE(effects.size(), kMost);
  }
  for (ItemId item = 0; item < kItems; ++item) {
    ASSERT_TRUE(effects.Describe(item).has_value()) << item;
    EXPECT_EQ(effects.Describe(item)->shown, 3u);
  }
  EXPECT_EQ(effects.size(), kMost);
  // A new item of the catalogue is followed as well.
  effects.Observe(user, kItems, 0, 1, 1, {});
  EXPECT_TRUE(effects.Describe(kItems).has_value());
  // Users keep entries of items that are gone: they are nothing to take out.
  ItemEffects::Tally tally(effects);
  tally.Add(user);
  for (const auto& [id, history] : attackers) tally.Add(history);
  EXPECT_EQ(tally.Fault(), "");
  for (const auto& [id, history] : attackers) effects.Forget(history);
  EXPECT_EQ(effects.size(), kItems + 1);
}

TEST_F(ItemEffectsTest, TryingIsWorthMoreTheLessIsKnownAndTheMoreIsAhead) {
  Learn(DrawShowings(12, 1000, 10, 1, 0));
  const ItemEffects::Effect known = Of(3, 0);
  const ItemEffects::Effect unknown = Of(999, 0);
  EXPECT_TRUE(known.known);
  EXPECT_FALSE(unknown.known);
  EXPECT_GT(effects_.WorthOfTrying(unknown, 100, 1), effects_.WorthOfTrying(known, 100, 1));
  EXPECT_GT(effects_.WorthOfTrying(unknown, 1000, 1), effects_.WorthOfTrying(unknown, 10, 1));
  EXPECT_GT(effects_.WorthOfTrying(unknown, 1000, 1), effects_.WorthOfTrying(unknown, 1000, 0.1));
  EXPECT_EQ(effects_.WorthOfTrying({}, 1000, 1), 0);
}

// Ten of a catalogue are on offer at a visit.
TEST_F(ItemEffectsTest, HowOftenAnItemIsOfferedIsSeenFromThoseThatAreKnown) {
  for (const std::size_t items : {10, 1000, 100'000}) {
    ItemEffects effects(true);
    ItemHistory user;
    RandomStream random({13, items}, 602);
    double sum = 0;
    constexpr int kVisits = 400;
    for (int visit = 0; visit < kVisits; ++visit) {
      std::vector<ItemId> offer;
      while (offer.size() < 10) {
        const ItemId item = random.Below(items);
        if (std::ranges::count(offer, item) == 0) offer.push_back(item);
      }
      const auto known = std::ranges::count_if(
          offer, [&](ItemId item) { return effects.Describe(item).has_value(); });
      if (visit >= kVisits / 2) sum += effects.ShareOffered(static_cast<std::size_t>(known));
      effects.Observe(user, offer.front(), 0, random.Normal(), 1, {});
    }
    const double expected = std::max(10.0 / static_cast<double>(items), 1.0 / kVisits);
    const double share = sum / (kVisits / 2);
    EXPECT_LT(std::abs(std::log(share / expected)), std::log(2)) << items << ": " << share;
  }
}

// Two partitions and what each knows of the other's items is one that knows them all.
TEST_F(ItemEffectsTest, WhatOthersKnowCountsLikeOnesOwn) {
  const std::vector<Showing> showings = DrawShowings(12, 900, 6, 1, 1);
  ItemEffects parts[2] = {ItemEffects(true), ItemEffects(true)};
  std::map<UserId, ItemHistory> users[2];
  ModelAliases none;
  for (std::size_t i = 0; i < showings.size(); ++i) {
    const Showing& each = showings[i];
    Learn(each);
    parts[each.user % 2].Observe(users[each.user % 2][each.user], each.item, each.group,
                                 each.residual, 1, {});
    if (i % 100 != 99) continue;
    const std::vector<ItemSums> first = parts[0].OwnSums();
    const std::vector<ItemSums> second = parts[1].OwnSums();
    parts[0].Import(second, none);
    parts[1].Import(first, none);
  }
  // Variances are estimated each time there is an eighth more, that is at other moments where what
  // others saw comes a hundred at a time. Estimated now, from the same showings, all is the same.
  effects_.Forget({});
  for (ItemEffects& part : parts) {
    part.Forget({});
    EXPECT_EQ(part.size(), effects_.size());
    EXPECT_NEAR(part.noise_variance(), effects_.noise_variance(), 1e-12);
    EXPECT_NEAR(part.item_variance(), effects_.item_variance(), 1e-12);
    EXPECT_NEAR(part.group_variance(), effects_.group_variance(), 1e-12);
    for (ItemId item = 0; item < 6; ++item) {
      EXPECT_EQ(part.Describe(item)->shown, effects_.Describe(item)->shown);
      for (ModelId group = 0; group < 3; ++group) {
        const ItemEffects::Share share{group, 1};
        EXPECT_NEAR(part.Of(item, {&share, 1}).mean, Of(item, group).mean, 1e-12);
        EXPECT_NEAR(part.Of(item, {&share, 1}).variance, Of(item, group).variance, 1e-12);
      }
    }
  }
  // Groups that are joined have one favourite.
  ModelAliases joined;
  joined.Join(1, 2);
  parts[0].Import(parts[1].OwnSums(), joined);
  const auto described = parts[0].Describe(3);
  ASSERT_EQ(described->groups.size(), 3U);  // the others have not heard of it
  ItemSums other{.id = 3};
  for (const ItemSums& sums : parts[1].OwnSums()) {
    if (sums.id == 3) other.Add(sums, joined);
  }
  parts[0].Import({&other, 1}, joined);
  EXPECT_EQ(parts[0].Describe(3)->groups.size(), 2U);
  EXPECT_EQ(parts[0].Describe(3)->shown, effects_.Describe(3)->shown);
  // Users who leave take their part out of it, whatever it was called.
  for (auto& [user, history] : users[0]) parts[0].Forget(history);
  EXPECT_EQ(parts[0].size(), 1U);
  EXPECT_EQ(parts[0].Describe(3)->shown, other.shown);
  parts[0].Import({}, joined);
  EXPECT_EQ(parts[0].size(), 0U);
}

}  // namespace
}  // namespace codband
