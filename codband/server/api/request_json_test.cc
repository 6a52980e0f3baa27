#include "codband/server/api/request_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace codband::server {
namespace {

constexpr std::size_t kDim = 3;

// One for all tests: what it has parsed before must not matter.
JsonParser& TestParser() {
  static JsonParser parser;
  return parser;
}

std::string Nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

// The refusal of a body, "" if it is taken.
std::string RankFault(std::string_view body) {
  const Result<engine::RankRequest> request = ParseRank(TestParser(), body, kDim);
  if (request.ok()) return "";
  EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
  return request.status().message();
}

std::vector<double> Hashed(const std::vector<features::NamedFeature>& named) {
  std::vector<double> features(kDim, 0.0);
  features::HashFeatures(named, features);
  return features;
}

TEST(ParseRankTest, ReadsEveryField) {
  const Result<engine::RankRequest> request = ParseRank(
      TestParser(),
      R"( {"eventId":"e-1","userId":"ada","actions":["a",{"id":"b","features":[1,2.5,-3]}],
          "contextFeatures": [{"time": "night"}, 1.5], "excludedActions":["x","y"],
          "topK":7,"deferActivation":true} )",
      kDim);
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const engine::RankRequest& rank = request.value();
  EXPECT_EQ(rank.event_id, "e-1");
  EXPECT_EQ(rank.user, "ada");
  ASSERT_EQ(rank.candidates.size(), 2u);
  EXPECT_EQ(rank.candidates[0].id, "a");
  EXPECT_TRUE(rank.candidates[0].features.empty());
  EXPECT_EQ(rank.candidates[1].id, "b");
  EXPECT_EQ(rank.candidates[1].features, (std::vector<double>{1, 2.5, -3}));
  EXPECT_EQ(rank.context, R"([{"time":"night"},1.5])");
  EXPECT_EQ(rank.excluded, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(rank.top_k, 7u);
  EXPECT_TRUE(rank.defer_activation);
  EXPECT_FALSE(rank.explain);
}

TEST(ParseRankTest, NeedsNothingButTheUser) {
  for (const char* body : {R"({"userId":"ada"})", R"({"user":"ada"})"}) {
    const Result<engine::RankRequest> request = ParseRank(TestParser(), body, kDim);
    ASSERT_TRUE(request.ok()) << body;
    EXPECT_EQ(request.value().user, "ada");
    EXPECT_TRUE(request.value().event_id.empty());
    EXPECT_TRUE(request.value().candidates.empty());
    EXPECT_EQ(request.value().top_k, 0u);
    EXPECT_FALSE(request.value().defer_activation);
  }
}

TEST(ParseRankTest, NamedFeaturesAreFlattenedAndHashed) {
  const Result<engine::RankRequest> request =
      ParseRank(TestParser(),
                R"({"userId":"u","actions":[{"id":"a","features":
          {"genre":"rock","price":3.5,"new":true,"old":false,"by":{"name":"Björk","age":{"years":2}},
           "moods":["calm","dark"]}}]})",
                kDim);
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const std::vector<features::NamedFeature> expected = {
      {"genre=rock", 1},   {"price", 3.5},    {"new", 1},       {"by.name=Björk", 1},
      {"by.age.years", 2}, {"moods=calm", 1}, {"moods=dark", 1}};
  EXPECT_EQ(request.value().candidates[0].named, expected);
  EXPECT_EQ(request.value().candidates[0].features, Hashed(expected));
}

TEST(ParseRankTest, AListOfObjectsIsOneSetOfFeatures) {
  const Result<engine::RankRequest> request = ParseRank(
      TestParser(),
      R"({"userId":"u","actions":[{"id":"a","features":[{"x":1},{"genre":"a"},{"genre":"b"},{}]}]})",
      kDim);
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const std::vector<features::NamedFeature> expected = {{"x", 1}, {"genre=a", 1}, {"genre=b", 1}};
  EXPECT_EQ(request.value().candidates[0].named, expected);
}

TEST(ParseRankTest, NoNamedFeaturesAreZeros) {
  const Result<engine::RankRequest> request = ParseRank(
      TestParser(), R"({"userId":"u","actions":[{"id":"a","features":{"old":false}}]})", kDim);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request.value().candidates[0].features, std::vector<double>(kDim, 0.0));
}

struct BadBody {
  std::string body;
  std::string fault;  // how the message starts
};

TEST(ParseRankTest, RefusesWithFieldAndReason) {
  const std::string long_id(257, 'x');
  const std::vector<BadBody> cases = {
      {"", "body: is empty"},
      {" \n\t ", "body: is empty"},
      {"nonsense", "body: is not valid JSON"},
      {"[]", "body: is an array, expected an object"},
      {"\"text\"", "body: is a string, expected an object"},
      {"17", "body: is 17, expected an object"},
      {R"({"userId":"u"} x)", "body: is not valid JSON"},
      {R"({"userId":"u"}{})", "body: is not valid JSON"},
      {R"({"userId":"u")", "userId: is not valid JSON"},
      {R"({"userId":7})", "userId: is 7, expected a string"},
      {R"({"userId":null})", "userId: is null, expected a string"},
      {R"({"userId":""})", "userId: has 0 bytes, expected 1 to 256"},
      {R"({"userId":")" + long_id + "\"}", "userId: has 257 bytes, expected 1 to 256"},
      {R"({"userId":"u","user":"u"})", "user: means the same as userId"},
      {R"({"userId":"u","userId":"u"})", "userId: is given twice"},
      {R"({"userId":"u","eventId":5})", "eventId: is 5, expected a string"},
      {R"({"userId":"u","top":3})", "top: is unknown, expected one of userId, eventId, actions"},
      {R"({"userId":"u","":3})", "body: the empty name is unknown"},
      {R"({"userId":"u","topK":0})", "topK: is 0, expected a positive whole number"},
      {R"({"userId":"u","topK":-1})", "topK: is -1, expected a positive whole number"},
      {R"({"userId":"u","topK":1.5})", "topK: is 1.5, expected a positive whole number"},
      {R"({"userId":"u","topK":"1"})", "topK: is a string, expected a positive whole number"},
      {R"({"userId":"u","topK":99999999999999999999})",
       "topK: is 99999999999999999999, an integer"},
      {R"({"userId":"u","deferActivation":1})", "deferActivation: is 1, expected true or false"},
      {R"({"userId":"u","excludedActions":"a"})",
       "excludedActions: is a string, expected an array"},
      {R"({"userId":"u","excludedActions":["a",3]})",
       "excludedActions[1]: is 3, expected a string"},
      {R"({"userId":"u","actions":"a"})", "actions: is a string, expected an array"},
      {R"({"userId":"u","actions":[]})", "actions: is empty"},
      {R"({"userId":"u","actions":["a",""]})", "actions[1]: has 0 bytes"},
      {R"({"userId":"u","actions":[3]})", "actions[0]: is 3, expected an id or an object"},
      {R"({"userId":"u","actions":[{"features":[1,2,3]}]})", "actions[0].id: is missing"},
      {R"({"userId":"u","actions":[{"id":"a","feature":1}]})", "actions[0].feature: is unknown"},
      {R"({"userId":"u","actions":[{"id":"a","id":"b"}]})", "actions[0].id: is given twice"},
      {R"({"userId":"u","contextFeatures":{"a":{"b":1,"b":2}}})",
       "contextFeatures.a.b: is given twice"},
      {R"({"userId":"u","contextFeatures":)" + Nested(100) + "}", "contextFeatures"},
      {Nested(100'000), ""},
      {R"({"userId":"u","contextFeatures":NaN})", "contextFeatures: is not valid JSON at byte 3"},
      {"{\"userId\":\"\xff\"}", "userId: is not valid JSON"},
      {"{\"userId\":\"\xed\xa0\x80\"}", "userId: is not valid JSON"},
      {R"({"userId":"\ud800"})", "userId: is not valid JSON"},
      {std::string("{\"userId\":\"a\0b\"}", 16), "userId: is not valid JSON"},
  };
  for (const BadBody& bad : cases) {
    const std::string fault = RankFault(bad.body);
    EXPECT_FALSE(fault.empty()) << bad.body.substr(0, 200);
    EXPECT_EQ(fault.substr(0, bad.fault.size()), bad.fault) << bad.body.substr(0, 200);
  }
}

TEST(ParseRankTest, ActionsOfARequestAreBounded) {
  std::string body = R"({"userId":"u","actions":["a0")";
  for (std::size_t i = 1; i < kMostActions; ++i) body += ",\"a" + std::to_string(i) + "\"";
  EXPECT_EQ(RankFault(body + "]}"), "");
  EXPECT_EQ(RankFault(body + R"(,"one more"]})"),
            "actions: has more than 10000 actions; leave it out to rank the whole catalogue");
}

TEST(ParseRankTest, RefusesFeaturesWithFieldAndReason) {
  const std::string long_name(1025, 'n');
  const std::string at = "actions[0].features";
  const std::vector<BadBody> cases = {
      {"[1,2]", at + ": has 2 numbers, expected 3"},
      {"[1,2,3,4]", at + ": has 4 numbers, expected 3"},
      {"[]", at + ": has 0 numbers, expected 3"},
      {"[1,\"2\",3]", at + "[1]: is a string, expected a number"},
      {"[1,null,3]", at + "[1]: is null, expected a number"},
      {"[1,2,NaN]", at + "[2]: is not valid JSON"},
      {"[1,Infinity,3]", at + "[1]: is not valid JSON"},
      {"[1e400,2,3]", at + "[0]: is 1e400, not a finite number"},
      {"[1,2,-1e999]", at + "[2]: is -1e999, not a finite number"},
      {"[1,2,123456789012345678901234567890]", at + "[2]: is 123456789012345678901234567890, an"},
      {"[{\"a\":1},2]", at + "[1]: is 2, expected an object"},
      {"[{\"a\":1},{\"a\":2}]", at + ": has the feature 'a' twice"},
      {"{\"a\":{\"b\":1},\"a.b\":2}", at + ": has the feature 'a.b' twice"},
      {"{\"a\":1,\"a\":1}", at + ".a: is given twice"},
      {"{\"a\":null}", at + ".a: is null, expected a number"},
      {"{\"a\":[1,2]}", at + ".a[0]: is 1, expected a string"},
      {"{\"\":1}", at + ": has a feature with an empty name"},
      {"{\"a\":{\"\":1}}", at + ".a: has a feature with an empty name"},
      {"{\"" + long_name + "\":1}", at + "." + std::string(200, 'n') + ": gives a name of 1025"},
      {"\"rock\"", at + ": is a string, expected 3 numbers or an object"},
      {"7", at + ": is 7, expected 3 numbers or an object"},
  };
  for (const BadBody& bad : cases) {
    const std::string body = R"({"userId":"u","actions":[{"id":"a","features":)" + bad.body + "}]}";
    EXPECT_EQ(RankFault(body).substr(0, bad.fault.size()), bad.fault) << body.substr(0, 200);
  }
}

TEST(ParseRankTest, RefusesSumsThatNoNumberHolds) {
  // Names that add up when there is one place for all.
  std::string features;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "n" + std::to_string(i);
    if (features::PlaceOf(name, 1).sign > 0)
      features += (features.empty() ? "\"" : ",\"") + name + "\":1e308";
  }
  const Result<engine::RankRequest> request = ParseRank(
      TestParser(), R"({"userId":"u","actions":[{"id":"a","features":{)" + features + "}}]}", 1);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().message(),
            "actions[0].features: overflows: the hashed sum is not finite");
}

TEST(ParseRankTest, NestingUpToTheLimitIsTaken) {
  const std::string open = R"({"userId":"u","contextFeatures":)";
  EXPECT_EQ(RankFault(open + Nested(kMaxJsonDepth - 2) + "}"), "");
  EXPECT_NE(RankFault(open + Nested(kMaxJsonDepth + 1) + "}").find("is nested deeper than 64"),
            std::string::npos);
}

TEST(ParseRewardTest, ReadsNumbersAndNothingElse) {
  EXPECT_EQ(ParseReward(TestParser(), R"({"value":0.25})").value(), 0.25);
  EXPECT_EQ(ParseReward(TestParser(), R"({"value":-3})").value(), -3);
  EXPECT_EQ(ParseReward(TestParser(), R"({"value":18446744073709551615})").value(),
            18446744073709551615.0);
  const std::vector<BadBody> cases = {
      {"", "body: is empty"},
      {"{}", "value: is missing"},
      {R"({"value":"1"})", "value: is a string, expected a number"},
      {R"({"value":true})", "value: is true, expected a number"},
      {R"({"value":null})", "value: is null, expected a number"},
      {R"({"value":1e309})", "value: is 1e309, not a finite number"},
      {R"({"value":NaN})", "value: is not valid JSON"},
      {R"({"value":-Infinity})", "value: is not valid JSON"},
      {R"({"value":1,"value":2})", "value: is given twice"},
      {R"({"value":1,"reward":2})", "reward: is unknown, expected one of value"},
  };
  for (const BadBody& bad : cases) {
    const Result<double> value = ParseReward(TestParser(), bad.body);
    ASSERT_FALSE(value.ok()) << bad.body;
    EXPECT_EQ(value.status().message().substr(0, bad.fault.size()), bad.fault);
  }
}

TEST(ParseItemTest, TakesTheIdFromThePathOrTheBody) {
  const Result<engine::Item> by_path =
      ParseItem(TestParser(), R"({"features":[1,2,3],"tags":["a","b"]})", kDim, "x");
  ASSERT_TRUE(by_path.ok()) << by_path.status().ToString();
  EXPECT_EQ(by_path.value(), (engine::Item{"x", {1, 2, 3}, {}, {"a", "b"}}));
  const Result<engine::Item> by_body =
      ParseItem(TestParser(), R"({"id":"x","features":{"g":"w"}})", kDim);
  ASSERT_TRUE(by_body.ok()) << by_body.status().ToString();
  EXPECT_EQ(by_body.value(), (engine::Item{"x", Hashed({{"g=w", 1}}), {{"g=w", 1}}, {}}));
  EXPECT_TRUE(ParseItem(TestParser(), R"({"id":"x","features":[1,2,3]})", kDim, "x").ok());
}

TEST(ParseItemTest, RefusesWithFieldAndReason) {
  const std::vector<BadBody> cases = {
      {R"({"features":[1,2,3]})", "id: is missing"},
      {R"({"id":"x"})", "features: is missing"},
      {R"({"id":"x","features":[1]})", "features: has 1 numbers, expected 3"},
      {R"({"id":"x","features":[1,2,3],"tags":[1]})", "tags[0]: is 1, expected a string"},
      {R"({"id":"x","features":[1,2,3],"tags":{}})", "tags: is an object, expected an array"},
      {R"({"id":"x","features":[1,2,3],"tag":[]})",
       "tag: is unknown, expected one of id, features"},
  };
  for (const BadBody& bad : cases) {
    const Result<engine::Item> item = ParseItem(TestParser(), bad.body, kDim);
    ASSERT_FALSE(item.ok()) << bad.body;
    EXPECT_EQ(item.status().message().substr(0, bad.fault.size()), bad.fault);
  }
  const Result<engine::Item> other =
      ParseItem(TestParser(), R"({"id":"y","features":[1,2,3]})", kDim, "x");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().message(), "id: differs from the one in the path");
}

TEST(ParseBackupTest, WantsANameAndNoPath) {
  EXPECT_EQ(ParseBackup(TestParser(), R"({"name":"2026-11-16_a.1"})").value(), "2026-11-16_a.1");
  for (const char* body :
       {"{}", R"({"name":""})", R"({"name":"a/b"})", R"({"name":3})", R"({"name":"a\u0000b"})",
        R"({"name":"/etc/x"})", R"({"name":".."})", R"({"nam":"a"})"}) {
    EXPECT_FALSE(ParseBackup(TestParser(), body).ok()) << body;
  }
  // What was asked for before says what to send now.
  EXPECT_NE(
      ParseBackup(TestParser(), R"({"directory":"/a/b"})").status().message().find("\"name\""),
      std::string::npos);
}

TEST(DecodeIdTest, IdsAreDecodedAndChecked) {
  EXPECT_EQ(DecodeId("a%2Fb%20c+d").value(), "a/b c+d");
  EXPECT_EQ(DecodeId("caf%C3%A9").value(), "café");
  EXPECT_EQ(DecodeId("%").status().message(),
            "id: has a '%' at byte 0 that no two hex digits follow");
  EXPECT_FALSE(DecodeId("a%4").ok());
  EXPECT_FALSE(DecodeId("a%zz").ok());
  EXPECT_EQ(DecodeId("%ff").status().message(), "id: is not valid UTF-8");
  EXPECT_TRUE(DecodeId(std::string(256, 'a')).ok());
  EXPECT_EQ(DecodeId(std::string(257, 'a')).status().message(),
            "id: has 257 bytes, expected 1 to 256");
}

TEST(ParseTest, AnyBytesAreTakenOrRefused) {
  // Every prefix and every single changed byte of a good request: no crash, and a field in every
  // refusal.
  const std::string good =
      R"({"userId":"ü","topK":3,"actions":["a",{"id":"b","features":{"x":1.5e3,"y":["w"]}}]})";
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char replacement : {'\0', '"', '{', ']', '\\', '\xff', '9', 'e', ','}) {
      std::string body = good;
      body[i] = replacement;
      const std::string fault = RankFault(body);
      EXPECT_TRUE(fault.empty() || fault.find(": ") != std::string::npos) << fault;
    }
    EXPECT_NE(RankFault(good.substr(0, i)), "") << i;
  }
}

}  // namespace
}  // namespace codband::server
