#include "codband/server/api/feature_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codband/engine/catalogue.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

using features::NamedFeature;
constexpr std::size_t kByName = 0;

Result<engine::RankRequest> Parse(const std::string& body, std::string_view user_from = {}) {
  JsonParser parser;
  return ParseRank(parser, body, kByName, user_from);
}

std::string Fault(const std::string& body) {
  const auto request = Parse(body);
  return request.ok() ? "" : request.status().message();
}

TEST(FeatureJsonTest, EveryKindOfValueHasItsName) {
  const auto request = Parse(
      R"({"userId":"u","actions":[{"id":"a","features":[{"price":3.5,"genre":"rock",
          "moods":["calm","dark"],"new":true,"old":false,"by":{"name":"Björk"},
          "embedding":[0.5,-1],"none":[]}]},{"id":"b","features":[1,2]},{"id":"c","features":[]}],
          "contextFeatures":[{"device":{"mobile":true}},{"hour":7}],"userFeatures":{"age":30}})");
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const auto& actions = request.value().candidates;
  EXPECT_EQ(actions[0].named, (std::vector<NamedFeature>{{"price", 3.5},
                                                         {"genre=rock", 1},
                                                         {"moods=calm", 1},
                                                         {"moods=dark", 1},
                                                         {"new=true", 1},
                                                         {"old=false", 1},
                                                         {"by.name=Björk", 1},
                                                         {"embedding[0]", 0.5},
                                                         {"embedding[1]", -1}}));
  EXPECT_TRUE(actions[0].features.empty());
  EXPECT_EQ(actions[1].features, (std::vector<double>{1, 2}));
  EXPECT_TRUE(actions[2].described());
  EXPECT_EQ(request.value().context_features,
            (std::vector<NamedFeature>{{"device.mobile=true", 1}, {"hour", 7}}));
  EXPECT_EQ(request.value().user_features, (std::vector<NamedFeature>{{"age", 30}}));
  EXPECT_EQ(request.value().context, R"([{"device":{"mobile":true}},{"hour":7}])");
}

TEST(FeatureJsonTest, RefusesWhatIsNoFeature) {
  const auto action = [](const std::string& features) {
    return R"({"userId":"u","actions":[{"id":"a","features":)" + features + "}]}";
  };
  const auto context = [](const std::string& features) {
    return R"({"userId":"u","contextFeatures":)" + features + "}";
  };
  const std::string at = "actions[0].features";
  EXPECT_EQ(Fault(action("7")), at + ": is 7, expected numbers or an object of named features");
  EXPECT_EQ(Fault(action(R"({"a":null})")),
            at + ".a: is null, expected a number, a string, true, false, an object, or an array of "
                 "strings or of numbers");
  EXPECT_EQ(Fault(action(R"({"a":[1,"b"]})")),
            at + ".a[1]: is a string, expected a number, as all others of this array");
  EXPECT_EQ(Fault(action(R"({"a":["b",1]})")), at + ".a[1]: is 1, expected a string");
  EXPECT_EQ(Fault(action(R"({"a":[{"b":1}]})")).substr(0, 30),
            (at + ".a[0]: is an object").substr(0, 30));
  EXPECT_EQ(Fault(action(R"([{"a":1},{"a":2}])")), at + ": has the feature 'a' twice");
  EXPECT_EQ(Fault(context("3")),
            "contextFeatures: is 3, expected an object of named features or an array of such "
            "objects");
  EXPECT_EQ(Fault(context(R"(["morning"])")),
            "contextFeatures[0]: is a string, expected an object");
  EXPECT_NE(Fault(action(R"({"a":NaN})")), "");
  EXPECT_NE(Fault(action(R"({"a":1e999})")), "");
}

TEST(FeatureJsonTest, SizesAreBounded) {
  const std::string name(1 << 20, 'n');
  EXPECT_NE(Fault(R"({"actions":[{"id":"a","features":{")" + name + R"(":1}}]})")
                .find("gives a name of 1048576 bytes, expected at most 1024"),
            std::string::npos);
  std::string many = "{";
  for (std::size_t i = 0; i <= engine::kMaxNamedFeatures; ++i) {
    many += "\"n" + std::to_string(i) + "\":1,";
  }
  many.back() = '}';
  EXPECT_NE(Fault(R"({"contextFeatures":)" + many + "}").find("expected at most 4096"),
            std::string::npos);
  std::string numbers = "[1";
  for (std::size_t i = 0; i < engine::kMaxNamedFeatures; ++i) numbers += ",1";
  EXPECT_NE(Fault(R"({"actions":[{"id":"a","features":)" + numbers + "]}]}")
                .find("has 4097 numbers, expected at most 4096"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{\"a\":";
  EXPECT_NE(Fault(R"({"contextFeatures":)" + deep + "1" + std::string(1000, '}') + "}"), "");
}

TEST(FeatureJsonTest, TheUserMayBeInTheContext) {
  const auto user = [](const std::string& context, std::string_view path) {
    const auto request = Parse(R"({"contextFeatures":)" + context + "}", path);
    EXPECT_TRUE(request.ok()) << request.status().ToString();
    return request.ok() ? request.value().user : "";
  };
  EXPECT_EQ(user(R"([{"hour":3},{"user":{"id":"ada","age":3}}])", "user.id"), "ada");
  EXPECT_EQ(user(R"({"user":{"id":17}})", "user.id"), "17");
  EXPECT_EQ(user(R"({"user.id":"eve"})", "user.id"), "eve");
  EXPECT_EQ(user(R"({"user":{"name":"x"}})", "user.id"), "");
  EXPECT_EQ(user(R"({"user":{"id":"ada"}})", ""), "");
  // It is no feature, and a userId goes before it.
  const auto request =
      Parse(R"({"userId":"ann","contextFeatures":{"user":{"id":"ada","age":3}}})", "user.id");
  EXPECT_EQ(request.value().user, "ann");
  EXPECT_EQ(request.value().context_features, (std::vector<NamedFeature>{{"user.age", 3}}));
  const auto bad = Parse(R"({"contextFeatures":{"user":{"id":{"x":1}}}})", "user.id");
  EXPECT_EQ(bad.status().message(),
            "contextFeatures.user.id: is an object, expected the id of a user: a string or a "
            "number");
}

}  // namespace
}  // namespace codband::server
