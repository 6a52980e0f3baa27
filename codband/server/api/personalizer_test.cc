// Requests as the published reference of Azure Personalizer has them, over HTTP, to a real engine;
// and what else depends on names.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "codband/server/engine_fixture.h"

namespace codband::server {
namespace {

using nlohmann::json;

class PersonalizerTest : public EngineFixture {
 protected:
  PersonalizerTest() : EngineFixture({.user_from = "user.id"}) {}

  TestReply Post(const std::string& target, const std::string& body) {
    return Ask("POST", target, body, "Ocp-Apim-Subscription-Key: any\r\n");
  }
  TestReply Get(const std::string& target) { return Ask("GET", target); }
};

constexpr const char* kReferenceRank = R"({
  "contextFeatures": [{"timeOfDay": "Morning"}],
  "actions": [
    {"id": "NewsArticle", "features": [{"type": "News"}]},
    {"id": "SportsArticle", "features": [{"type": "Sports"}]},
    {"id": "EntertainmentArticle", "features": [{"type": "Entertainment"}]}],
  "excludedActions": ["SportsArticle"],
  "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
  "deferActivation": false})";

constexpr const char* kMultiSlotBody = R"({
  "contextFeatures": [
    {"user": {"profileType": "AnonymousUser", "latLong": "47.6,-122.1"}},
    {"environment": {"dayOfMonth": "28", "monthOfYear": "8", "weather": "Sunny"}},
    {"device": {"mobile": true, "windows": true}},
    {"recentActivity": {"itemsInCart": 3}}],
  "actions": [
    {"id": "NewsArticle", "features": [{"type": "News"}]},
    {"id": "SportsArticle", "features": [{"type": "Sports"}]},
    {"id": "EntertainmentArticle", "features": [{"type": "Entertainment"}]}],
  "slots": [
    {"id": "Main Article", "features": [{"size": "Large", "position": "Top Middle"}],
     "excludedActions": ["SportsArticle"], "baselineAction": "EntertainmentArticle"},
    {"id": "Side Bar", "features": [{"size": "Small"}], "baselineAction": "NewsArticle"}],
  "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
  "deferActivation": false})";

TEST_F(PersonalizerTest, RankRewardAndActivateAsTheReferenceHasThem) {
  const TestReply rank = Post("/personalizer/v1.0/rank", kReferenceRank);
  ASSERT_EQ(rank.status, 201) << rank.body;
  const json reply = rank.Json();
  EXPECT_EQ(reply["eventId"], "75269AD0-BFEE-4598-8196-C57383D38E10");
  EXPECT_EQ(reply["ranking"].size(), 2U);  // without the excluded one
  EXPECT_EQ(reply["ranking"][0]["id"], reply["rewardActionId"]);
  double sum = 0;
  for (const json& each : reply["ranking"]) sum += each["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  std::set<std::string> fields;
  for (const auto& [name, ignored] : reply.items()) fields.insert(name);
  EXPECT_EQ(fields, (std::set<std::string>{"eventId", "ranking", "rewardActionId"}));

  const std::string event = "/personalizer/v1.0/events/75269AD0-BFEE-4598-8196-C57383D38E10";
  for (int i = 0; i < 2; ++i) {  // a repeated reward changes nothing
    const TestReply reward = Post(event + "/reward", R"({"value": 1.0})");
    EXPECT_EQ(reward.status, 204) << reward.body;
    EXPECT_EQ(reward.body, "");
  }
  EXPECT_EQ(Post(event + "/activate", "").status, 204);
  EXPECT_EQ(engine_->Stats().rewards_accepted, 1U);
  EXPECT_EQ(Post("/personalizer/v1.0/events/none/reward", R"({"value": 1.0})").status, 404);
}

TEST_F(PersonalizerTest, FieldsThatAreNullCountAsMissing) {
  const TestReply reply = Post("/personalizer/v1.0/rank",
                               R"({"contextFeatures":null,"eventId":null,"excludedActions":null,
                                   "actions":[{"id":"a","features":[]},{"id":"b","features":[]}]})");
  EXPECT_EQ(reply.status, 201) << reply.body;
  EXPECT_NE(reply.Json()["eventId"], "");
  EXPECT_EQ(Post("/personalizer/v1.0/rank", "{}").Error("field"), "actions");
  EXPECT_EQ(Post("/personalizer/v1.0/rank", R"({"actions":[]})").status, 400);
}

TEST_F(PersonalizerTest, DeferredEventsWaitForActivation) {
  json body = json::parse(kReferenceRank);
  body["deferActivation"] = true;
  ASSERT_EQ(Post("/personalizer/v1.0/rank", body.dump()).status, 201);
  const std::string event = "/personalizer/v1.0/events/75269AD0-BFEE-4598-8196-C57383D38E10";
  EXPECT_EQ(Post(event + "/activate", "").status, 204);
  EXPECT_EQ(Post(event + "/reward", R"({"value": 0.5})").status, 204);
}

TEST_F(PersonalizerTest, SlotsGetDifferentActionsAndRewardsOfTheirOwn) {
  const TestReply rank = Post("/personalizer/v1.1/multislot/rank", kMultiSlotBody);
  ASSERT_EQ(rank.status, 201) << rank.body;
  const json reply = rank.Json();
  ASSERT_EQ(reply["slots"].size(), 2U);
  EXPECT_EQ(reply["slots"][0]["id"], "Main Article");
  EXPECT_NE(reply["slots"][0]["rewardActionId"], "SportsArticle");
  EXPECT_NE(reply["slots"][0]["rewardActionId"], reply["slots"][1]["rewardActionId"]);
  EXPECT_EQ(reply["eventId"], "75269AD0-BFEE-4598-8196-C57383D38E10");
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/rank", kMultiSlotBody).Json(), reply);

  const std::string event =
      "/personalizer/v1.1/multislot/events/75269AD0-BFEE-4598-8196-C57383D38E10";
  const TestReply first =
      Post(event + "/reward", R"({"reward":[{"slotId":"Main Article","value":0.5}]})");
  EXPECT_EQ(first.status, 204) << first.body;
  EXPECT_EQ(Post(event + "/reward", R"({"reward":[{"slotId":"Main Article","value":0.5},
                                                 {"slotId":"Side Bar","value":0.6}]})")
                .status,
            204);
  EXPECT_EQ(engine_->Stats().rewards_accepted, 2U);
  EXPECT_EQ(Post(event + "/reward", R"({"reward":[{"slotId":"None","value":1}]})").status, 404);
  EXPECT_EQ(Post(event + "/reward", R"({"reward":[{"slotId":"Side Bar","value":0.6},
                                                 {"slotId":"Side Bar","value":0.1}]})")
                .Error("field"),
            "reward[1].slotId");
  EXPECT_EQ(Post(event + "/reward", R"({"reward":[{"slotId":"Main Article"}]})").Error("field"),
            "reward[0].value");
  EXPECT_EQ(Post(event + "/activate", "").status, 204);
}

TEST_F(PersonalizerTest, DeferredSlotsAreActivatedTogetherAlsoAfterARestart) {
  json body = json::parse(kMultiSlotBody);
  body["deferActivation"] = true;
  body["eventId"] = "a:b";
  ASSERT_EQ(Post("/personalizer/v1.1/multislot/rank", body.dump()).status, 201);
  Start();
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/events/a:b/activate", "").status, 204);
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/events/a/activate", "").status, 404);
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/events/a:b/reward",
                 R"({"reward":[{"slotId":"Side Bar","value":1}]})")
                .status,
            204);
}

TEST_F(PersonalizerTest, BadSlotsAreNamed) {
  const auto field = [&](const std::function<void(json&)>& change) {
    json body = json::parse(kMultiSlotBody);
    change(body);
    const TestReply reply = Post("/personalizer/v1.1/multislot/rank", body.dump());
    EXPECT_EQ(reply.status, 400) << reply.body;
    return reply.Error("field");
  };
  EXPECT_EQ(field([](json& body) { body.erase("slots"); }), "slots");
  EXPECT_EQ(field([](json& body) { body["slots"] = json::array(); }), "slots");
  EXPECT_EQ(field([](json& body) { body["slots"][1]["id"] = "Main Article"; }), "slots[1].id");
  EXPECT_EQ(field([](json& body) { body["slots"][1].erase("baselineAction"); }),
            "slots[1].baselineAction");
  EXPECT_EQ(field([](json& body) { body["slots"][1]["baselineAction"] = "x"; }),
            "slots[1].baselineAction");
  EXPECT_EQ(field([](json& body) { body["slots"][0]["baselineAction"] = "SportsArticle"; }),
            "slots[0].baselineAction");
  EXPECT_EQ(field([](json& body) { body["slots"][0]["colour"] = 1; }), "slots[0].colour");
  EXPECT_EQ(field([](json& body) {
              body["actions"].erase(0);
              body["actions"].erase(0);
            }),
            "slots");
  EXPECT_EQ(field([](json& body) { body["eventId"] = std::string(250, 'e'); }), "slots[0].id");
  EXPECT_EQ(field([](json& body) {  // each slot ranks all actions
              for (int i = 0; i < 1000; ++i) {
                body["actions"].push_back({{"id", std::to_string(i)}, {"features", json::array()}});
              }
              for (int i = 2; i < 50; ++i) {
                const std::string id = std::to_string(i);
                body["slots"].push_back({{"id", id}, {"baselineAction", id}});
              }
            }),
            "slots");
  EXPECT_EQ(engine_->Stats().pending, 0U);
}

// The user is where the setting says; the id is no feature, so that it takes no column.
TEST_F(PersonalizerTest, TheUserMayComeWithTheContext) {
  json body = json::parse(kReferenceRank);
  body["contextFeatures"] = {{{"user", {{"id", "ada"}}}}, {{"timeOfDay", "Morning"}}};
  ASSERT_EQ(Post("/personalizer/v1.0/rank", body.dump()).status, 201);
  const std::string event = "/personalizer/v1.0/events/75269AD0-BFEE-4598-8196-C57383D38E10";
  ASSERT_EQ(Post(event + "/reward", R"({"value": 1.0})").status, 204);
  EXPECT_EQ(Get("/v1/users/ada").Json()["observations"], 1);
  const json features = Get("/v1/features").Json();
  std::set<std::string> names;
  for (const json& column : features["columns"]) names.insert(column["name"]);
  EXPECT_TRUE(names.contains("type=News"));
  EXPECT_TRUE(names.contains("timeOfDay=Morning"));
  EXPECT_TRUE(names.contains("type=News × timeOfDay=Morning"));
  for (const std::string& name : names) EXPECT_EQ(name.find("ada"), std::string::npos) << name;
  EXPECT_EQ(features["limit"], 64);
}

TEST_F(PersonalizerTest, ItemsAreListedInPages) {
  for (const char* id : {"b", "a", "c"}) {
    const TestReply put =
        Ask("PUT", std::string("/v1/items/") + id, R"({"features":{"genre":"jazz"}})");
    ASSERT_EQ(put.status, 204) << put.body;
  }
  const json first = Get("/v1/items?limit=2").Json();
  EXPECT_EQ(first["items"][0]["id"], "a");
  EXPECT_EQ(first["items"][0]["named"][0]["name"], "genre=jazz");
  EXPECT_EQ(first["next"], "b");
  const json second = Get("/v1/items?limit=2&after=b").Json();
  EXPECT_EQ(second["items"].size(), 1U);
  EXPECT_TRUE(second["next"].is_null());
  EXPECT_EQ(Get("/v1/items?limit=0").status, 400);
  EXPECT_EQ(Get("/v1/items?limit=1001").Error("field"), "limit");
}

// Event ids are the client's: one could make up any number that look like slots of one event.
TEST_F(PersonalizerTest, OneRequestActivatesNoMoreEventsThanItMayHaveSlots) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(Post("/v1/rank", R"({"deferActivation":true,"eventId":"multislot:1:x:)" +
                                   std::to_string(100 + i) +
                                   R"(","actions":[{"id":"a","features":{"f":1}}]})")
                  .status,
              200);
  }
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/events/x/activate", "").status, 204);
  EXPECT_EQ(engine_->FindEvents("multislot:1:x:", 1000).value().size(), 60U);
  EXPECT_EQ(engine_->FindEvents("multislot:1:x:", 50).value().size(), 50U);
}

// Slot 2 may show one action only: slot 1 leaves it alone, whatever it would rather show.
TEST_F(PersonalizerTest, NoSlotTakesTheOnlyActionOfALaterOne) {
  for (int i = 0; i < 30; ++i) {
    const TestReply reply = Post("/personalizer/v1.1/multislot/rank",
                                 R"({"actions": [{"id": "A", "features": [{"k": "a"}]},
                                                 {"id": "B", "features": [{"k": "b"}]}],
                                     "contextFeatures": [{"user": {"id": "mia"}}],
                                     "slots": [{"id": "s1", "baselineAction": "A"},
                                               {"id": "s2", "baselineAction": "B",
                                                "excludedActions": ["A"]}]})");
    ASSERT_EQ(reply.status, 201) << reply.body;
    EXPECT_EQ(reply.Json()["slots"][0]["rewardActionId"], "A");
    EXPECT_EQ(reply.Json()["slots"][1]["rewardActionId"], "B");
  }
}

TEST_F(PersonalizerTest, WhatCannotBeShownIsRefusedBeforeAnythingIsDecided) {
  const TestReply stuck = Post("/personalizer/v1.1/multislot/rank",
                               R"({"actions": [{"id": "A"}, {"id": "B"}, {"id": "C"}],
                                   "slots": [{"id": "s1", "baselineAction": "A"},
                                             {"id": "s2", "baselineAction": "B",
                                              "excludedActions": ["A", "C"]},
                                             {"id": "s3", "baselineAction": "B",
                                              "excludedActions": ["A", "C"]}]})");
  EXPECT_EQ(stuck.status, 400);
  EXPECT_NE(stuck.body.find("'s3'"), std::string::npos) << stuck.body;
  json many = {{"actions", json::array()}, {"slots", json::array()}};
  for (int i = 0; i < 51; ++i) {
    const std::string id = std::to_string(i);
    many["actions"].push_back({{"id", id}});
    many["slots"].push_back({{"id", id}, {"baselineAction", id}});
  }
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/rank", many.dump()).status, 400);
  // A generated event id counts, too.
  json wide = json::parse(kMultiSlotBody);
  wide.erase("eventId");
  wide["slots"][1]["id"] = std::string(230, 's');
  EXPECT_EQ(Post("/personalizer/v1.1/multislot/rank", wide.dump()).status, 400);
  EXPECT_EQ(engine_->Stats().ranks, 0U);
}

TEST_F(PersonalizerTest, RewardsOfSlotsCountTogetherOrNotAtAll) {
  ASSERT_EQ(Post("/personalizer/v1.1/multislot/rank", kMultiSlotBody).status, 201);
  const std::string event =
      "/personalizer/v1.1/multislot/events/75269AD0-BFEE-4598-8196-C57383D38E10/reward";
  EXPECT_EQ(Post(event, R"({"reward": [{"slotId": "Main Article", "value": 1},
                                       {"slotId": "Side Bar", "value": 1e7}]})")
                .status,
            400);
  EXPECT_EQ(Post(event, R"({"reward": [{"slotId": "Main Article", "value": 1},
                                       {"slotId": "Nowhere", "value": 1}]})")
                .status,
            404);
  EXPECT_EQ(engine_->Stats().rewards_accepted, 0U);
  EXPECT_EQ(Post(event, R"({"reward": [{"slotId": "Main Article", "value": 1}]})").status, 204);
  EXPECT_EQ(engine_->Stats().rewards_accepted, 1U);
}

}  // namespace
}  // namespace codband::server
