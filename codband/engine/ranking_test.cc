// Engine::Rank.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

TEST(RankingTest, SameEventIdAndStateGiveTheSameAnswer) {
  EngineBox box({.policy = "codband:explore=thompson"});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 5);
  std::set<std::string> answers;
  for (int i = 0; i < 40; ++i) {
    const RankRequest request{.event_id = "e" + std::to_string(i), .user = "user0"};
    const auto first = box.Rank(request);
    const auto second = box.Rank(request);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first.value().reward_action_id, second.value().reward_action_id);
    EXPECT_EQ(first.value().ranking[1].score, second.value().ranking[1].score);
    answers.insert(first.value().reward_action_id);
  }
  EXPECT_GT(answers.size(), 1U);
}

TEST(RankingTest, ProbabilitiesAreThoseOfTheChoice) {
  EngineBox box({.policy = "codband:explore=thompson", .exploration_floor = 0.1});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 3);
  std::map<std::string, double> said;
  std::map<std::string, double> chosen;
  constexpr int kVisits = 4000;
  for (int i = 0; i < kVisits; ++i) {
    const auto reply = box.Rank({.event_id = "p" + std::to_string(i), .user = "user0"});
    ASSERT_TRUE(reply.ok());
    chosen[reply.value().reward_action_id] += 1.0 / kVisits;
    double sum = 0;
    for (const RankedItem& item : reply.value().ranking) {
      if (i == 0) said[item.id] = item.probability;
      EXPECT_EQ(item.probability, said[item.id]);
      sum += item.probability;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  for (const auto& [id, probability] : said) {
    EXPECT_GE(probability, 0.1 / 3);
    // Five standard deviations.
    EXPECT_NEAR(chosen[id], probability, 5 * std::sqrt(0.25 / kVisits)) << id;
  }
}

TEST(RankingTest, RanksWhatIsOffered) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 30);
  const auto ids = [](const Result<RankReply>& reply) {
    std::set<std::string> out;
    for (const RankedItem& item : reply.value().ranking) out.insert(item.id);
    return out;
  };
  using Ids = std::set<std::string>;
  EXPECT_EQ(ids(box.Rank({.user = "user0"})), (Ids{"a", "b", "c"}));
  EXPECT_EQ(ids(box.Rank({.user = "user0", .candidates = {{.id = "b"}, {.id = "c"}}})),
            (Ids{"b", "c"}));
  EXPECT_EQ(ids(box.Rank({.user = "user0", .excluded = {"a", "nothing"}})), (Ids{"b", "c"}));
  // Excluded items do not use up places of the top k.
  EXPECT_EQ(box.Rank({.user = "user0", .excluded = {"a"}, .top_k = 2}).value().ranking.size(), 2U);
  EXPECT_EQ(ids(box.Rank({.user = "user0",
                          .candidates = {{.id = "b"}, {.id = "new", .features = {2, 0, 0}}}})),
            (Ids{"b", "new"}));
  const auto top = box.Rank({.event_id = "t", .user = "user0", .top_k = 1});
  ASSERT_EQ(top.value().ranking.size(), 1U);
  EXPECT_EQ(top.value().ranking[0].id, top.value().reward_action_id);
  ASSERT_TRUE(box.Delete("a").ok());
  EXPECT_EQ(box.Delete("a").code(), StatusCode::kNotFound);
  EXPECT_EQ(ids(box.Rank({.user = "user0"})), (Ids{"b", "c"}));
  box.Open();
  EXPECT_EQ(ids(box.Rank({.user = "user0"})), (Ids{"b", "c"}));
}

TEST(RankingTest, ManyActionsAreKeptApart) {
  EngineBox box;
  RankRequest request{.user = "u"};
  for (int i = 0; i < 5000; ++i) {
    request.candidates.push_back({.id = std::to_string(i), .features = {1, 0, 0}});
  }
  EXPECT_TRUE(box.Rank(request).ok());
  request.candidates.push_back({.id = "4321", .features = {0, 1, 0}});
  EXPECT_EQ(box.Rank(request).status().message(),
            "actions[5000].id: is '4321', as that of actions[4321]; expected another");
}

TEST(RankingTest, RepliesBeforeItIsDurableUnlessItRefuses) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  int replies = 0;
  const auto rank = [&](RankRequest request) {
    return Wait<Status>([&](auto done) {
      box->Rank(
          std::move(request), [&](const RankReply&) { ++replies; }, std::move(done));
    });
  };
  EXPECT_EQ(rank({.user = std::string(257, 'u')}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(rank({.user = "u", .excluded = {"a", "b", "c"}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(replies, 0);
  EXPECT_TRUE(rank({.user = "u"}).ok());
  EXPECT_EQ(replies, 1);
}

// Keys in ascending order are cheap for the store.
TEST(RankingTest, EventIdsAreNewAndInTheOrderOfTime) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  std::string last;
  for (int i = 0; i < 20; ++i) {
    const std::string id = box.Rank({.user = "u"}).value().event_id;
    EXPECT_EQ(id.size(), 32U);
    EXPECT_GT(id, last);
    last = id;
    box.Advance(1);
  }
  const std::string same_time = box.Rank({.user = "u"}).value().event_id;
  EXPECT_NE(box.Rank({.user = "u"}).value().event_id, same_time);
}

TEST(RankingTest, EventIdsAreAFunctionOfTheirSeedAndTheTime) {
  const auto ids = [](std::optional<std::uint64_t> seed) {
    EngineBox box({.event_id_seed = seed});
    EXPECT_TRUE(box.Put(ThreeItems()).ok());
    std::set<std::string> made;
    for (int i = 0; i < 3; ++i) made.insert(box.Rank({.user = "u"}).value().event_id);
    EXPECT_EQ(made.size(), 3U);
    return made;
  };
  EXPECT_EQ(ids(7), ids(7));
  EXPECT_NE(ids(7), ids(8));
  EXPECT_NE(ids(std::nullopt), ids(std::nullopt)) << "from the entropy of the system";
}

TEST(RankingTest, BadRequestsNameTheFieldAndChangeNothing) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  const auto rank_error = [&](RankRequest request) {
    const auto reply = box.Rank(std::move(request));
    return reply.ok() ? "no error" : reply.status().message();
  };
  EXPECT_EQ(rank_error({.user = std::string(257, 'u')}),
            "userId: has 257 bytes, expected 1 to 256");
  EXPECT_EQ(rank_error({.event_id = std::string(300, 'x'), .user = "u"}),
            "eventId: has 300 bytes, expected 1 to 256");
  EXPECT_EQ(rank_error({.user = "u", .candidates = {{.id = "a"}, {.id = "zz"}}}),
            "actions[1].id: 'zz' is not in the catalogue; give its features, or PUT /v1/items/zz");
  EXPECT_EQ(rank_error({.user = "u", .candidates = {{.id = "n", .features = {1, 2}}}}),
            "actions[0].features: has 2 numbers, expected 3");
  EXPECT_EQ(rank_error({.user = "u", .candidates = {{.id = "n", .features = {1, 2, NAN}}}}),
            "actions[0].features[2]: is nan, expected a number within ±1000000");
  EXPECT_EQ(rank_error({.user = "u", .candidates = {{.id = "a"}, {.id = "a"}}}),
            "actions[1].id: is 'a', as that of actions[0]; expected another");
  EXPECT_EQ(rank_error({.user = "u", .candidates = {{.id = "a"}}, .excluded = {"a"}}),
            "excludedActions: excludes every action, expected at least one to be left");
  EXPECT_EQ(box.Reward("e", NAN).status().message(),
            "value: is nan, expected a number from -1000000 to 1000000");
  EXPECT_EQ(box.Put({{.id = "x", .features = {1}, .named = {}, .tags = {}}}).message(),
            "features: has 1 numbers, expected 3");
  EXPECT_EQ(box.Put({{.id = "x", .features = {1, 2, 3}, .named = {}, .tags = {}},
                     {.id = "", .features = {1, 2, 3}, .named = {}, .tags = {}}})
                .message(),
            "items[1].id: has 0 bytes, expected 1 to 256");
  EXPECT_EQ(box->Stats().items, 3U);
  EXPECT_EQ(box->Stats().pending, 0U);
}

TEST(RankingTest, ApprenticeShowsTheFirstActionAndLearnsFromIt) {
  EngineBox box({.mode = Mode::kApprentice});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  for (int i = 0; i < 30; ++i) {
    const std::string event = "e" + std::to_string(i);
    const auto reply =
        box.Rank({.event_id = event, .user = "ann", .candidates = {{.id = "c"}, {.id = "a"}}});
    EXPECT_EQ(reply.value().reward_action_id, "c");
    ASSERT_TRUE(box.Reward(event, 1).ok());
  }
  EXPECT_EQ(box->GetUser("ann").value().observations, 30U);
  const auto models = box->Models(1);
  EXPECT_EQ(models.at(0).items.at(0).name, "c");
}

TEST(RankingTest, LoggingOnlyLearnsNothing) {
  EngineBox box({.mode = Mode::kLoggingOnly, .keep_candidates = true});
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  const auto reply = box.Rank(
      {.event_id = "e", .user = "ann", .candidates = {{.id = "c"}, {.id = "a"}}, .context = "{}"});
  EXPECT_EQ(reply.value().reward_action_id, "c");
  EXPECT_EQ(box.Reward("e", 1).value().outcome, RewardOutcome::kAccepted);
  EXPECT_EQ(box->GetUser("ann").status().code(), StatusCode::kNotFound);
  box.Close();
  const auto finished = box.TakeFinished();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_FALSE(finished[0].learned);
  EXPECT_EQ(finished[0].context, "{}");
  ASSERT_EQ(finished[0].candidates.size(), 2U);
  EXPECT_EQ(finished[0].candidates[0].probability, 1);
  EXPECT_EQ(finished[0].candidates[1].features, (std::vector<float>{1, 0, 0}));
}

TEST(RankingTest, ExplainsByFeatureAndGroup) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 30);
  const auto reply = box.Rank({.event_id = "x", .user = "user0", .explain = true});
  ASSERT_TRUE(reply.ok());
  ASSERT_TRUE(reply.value().explanation.has_value());
  const Explanation& explanation = *reply.value().explanation;
  double sum = explanation.intercept + explanation.item;
  for (const auto& part : explanation.contributions) sum += part.value;
  EXPECT_NEAR(sum, reply.value().ranking[0].mean, 1e-12);
  EXPECT_GE(explanation.group_users, 1U);
  EXPECT_FALSE(explanation.last_change_ms.has_value());
}

TEST(RankingTest, WhatIsLearnedOfAnItemGoesWithIt) {
  EngineBox box;
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  EXPECT_FALSE(box->DescribeItem("a").has_value());
  Play(box, 0, 20);
  const auto known = box->DescribeItem("a");
  ASSERT_TRUE(known.has_value());
  EXPECT_GT(known->shown, 0U);
  box.Close();
  box.Open();
  ASSERT_TRUE(box->DescribeItem("a").has_value());
  EXPECT_EQ(box->DescribeItem("a")->shown, known->shown);
  EXPECT_EQ(box->DescribeItem("a")->effect, known->effect);
  // Other features: the same item. Deleted and put again: another one.
  std::vector<Item> items = ThreeItems();
  items[0].features = {0.5, 0.5, 0};
  ASSERT_TRUE(box.Put(items).ok());
  EXPECT_EQ(box->DescribeItem("a")->shown, known->shown);
  ASSERT_TRUE(box.Delete("a").ok());
  ASSERT_TRUE(box.Put(items).ok());
  Visit(box, "user0", "b", 1000);  // by now the learner has come past the deletion
  const auto again = box->DescribeItem("a");
  EXPECT_LE(again ? again->shown : 0, 1U);
}

// Both have the same features: what the group expects of them is known from their own rewards.
TEST(RankingTest, ItemsOfAGroupAreOrderedByMoreThanTheirFeatures) {
  EngineBox box;
  std::vector<Item> items = ThreeItems();
  items.resize(2);
  items[1].features = items[0].features;
  items[0].id = "bad";
  items[1].id = "good";
  ASSERT_TRUE(box.Put(items).ok());
  for (int visit = 0; visit < 60; ++visit) {
    const std::string event = "e" + std::to_string(visit);
    const bool good = visit % 2 == 0;
    ASSERT_TRUE(
        box.Rank({.event_id = event, .user = "ann", .candidates = {{.id = good ? "good" : "bad"}}})
            .ok());
    ASSERT_TRUE(box.Reward(event, good ? 1 : 0).ok());
  }
  const auto models = box->Models(2);
  ASSERT_FALSE(models.empty());
  const ModelReport& group = models.front();
  ASSERT_EQ(group.items.size(), 2U);
  EXPECT_EQ(group.items[0].name, "good");
  EXPECT_EQ(group.worst.at(0).name, "bad");
  EXPECT_GT(group.items[0].weight, group.items[1].weight + 0.5);
}

TEST(RankingTest, NamedFeaturesAreExplainedByName) {
  EngineBox box;
  Item item{.id = "n",
            .features = std::vector<double>(3),
            .named = {{"genre=rock", 1}, {"price", 2}},
            .tags = {}};
  features::HashFeatures(item.named, item.features);
  ASSERT_TRUE(box.Put({item}).ok());
  EXPECT_EQ(box->GetItem("n").value(), item);
  for (int i = 0; i < 5; ++i) Visit(box, "ann", "n", i);
  const auto reply = box.Rank({.user = "ann", .explain = true});
  std::set<std::string> names;
  double sum = reply.value().explanation->intercept + reply.value().explanation->item;
  for (const auto& part : reply.value().explanation->contributions) {
    names.insert(part.feature);
    sum += part.value;
  }
  EXPECT_EQ(names, (std::set<std::string>{"genre=rock", "price"}));
  EXPECT_NEAR(sum, reply.value().ranking[0].mean, 1e-12);
}

}  // namespace
}  // namespace codband::engine
