// What a newcomer gets wrong and an attacker tries with features by name, over HTTP to a real
// engine: each gets a clear answer, nothing is lost, and memory is bounded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codband/server/engine_fixture.h"

namespace codband::server {
namespace {

using nlohmann::json;

class BadFeaturesTest : public EngineFixture {
 protected:
  TestReply Put(const std::string& features) {
    return Ask("PUT", "/v1/items/x", R"({"features":)" + features + "}");
  }
  TestReply Rank(const std::string& event, const std::string& context) {
    return Ask(
        "POST", "/v1/rank",
        fmt::format(R"({{"userId":"ann","eventId":"{}","contextFeatures":{}}})", event, context));
  }
  // A catalogue and a user who knows it.
  void TeachSomething() {
    for (const char* genre : {"jazz", "rock"}) {
      const TestReply put =
          Ask("PUT", std::string("/v1/items/") + genre,
              fmt::format(R"({{"features":{{"genre":"{}","price":3.5}}}})", genre));
      ASSERT_EQ(put.status, 204) << put.body;
    }
    for (int i = 0; i < 20; ++i) {
      const TestReply rank = Rank(fmt::format("e{}", i), R"({"device":"phone"})");
      ASSERT_EQ(rank.status, 200) << rank.body;
      const bool jazz = rank.Json()["rewardActionId"] == "jazz";
      ASSERT_EQ(Ask("POST", fmt::format("/v1/events/e{}/reward", i),
                    fmt::format(R"({{"value":{}}})", jazz ? 1 : 0))
                    .status,
                200);
    }
  }
  std::string Columns() { return Ask("GET", "/v1/features").body; }
};

std::string Nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += R"({"a":)";
  return text + "1" + std::string(depth, '}');
}

TEST_F(BadFeaturesTest, EachGetsAClearAnswerAndNothingIsLost) {
  TeachSomething();
  const std::string before = Columns();
  const engine::EngineStats stats = engine_->Stats();
  struct Case {
    std::string features;
    std::string field;
    std::string expected;  // a part of the message
  };
  const std::string megabyte(1'000'000, 'n');  // a body may have a little more
  std::string many = "{";
  for (int i = 0; i < 50'000; ++i) many += fmt::format("\"n{}\":1,", i);
  many.back() = '}';
  const std::vector<Case> cases = {
      {"7", "", "expected"},
      {"\"jazz\"", "", "expected"},
      {"true", "", "expected"},
      {R"({"genre":null})", ".genre", "is null, expected a number, a string"},
      {R"({"genre":[null]})", ".genre[0]", "is null, expected"},
      {R"({"genre":[1,"jazz"]})", ".genre[1]", "is a string, expected a number"},
      {R"({"genre":["jazz",1]})", ".genre[1]", "is 1, expected a string"},
      {R"({"genre":[[1],[2]]})", ".genre[0]", "is an array, expected a number"},
      {R"({"genre":[{"a":1}]})", ".genre[0]", "is an object, expected"},
      {R"({"price":1e7})", ".price", "is 10000000, expected a number within ±1000000"},
      {R"({"price":1e999})", ".price", "is 1e999, not a finite number"},
      {R"({"price":NaN})", ".price", "is not valid JSON"},
      {R"({"price":-Infinity})", ".price", "is not valid JSON"},
      {R"({"":1})", "", "has a feature with an empty name"},
      {R"({"a":1,"a":2})", ".a", "is given twice"},
      {R"({"a":{"b":1},"a.b":2})", "", "has the feature 'a.b' twice"},
      {R"({"a":"b","a=b":1})", "", "has the feature 'a=b' twice"},
      {R"({")" + megabyte + R"(":1})", "", "gives a name of 1000000 bytes, expected at most 1024"},
      {R"({"a":")" + megabyte + R"("})", ".a", "gives a name of 1000002 bytes"},
      {many, "", "is one feature too many, expected at most 4096"},
      {Nested(1000), "", "is nested deeper than 64 levels"},
  };
  for (const Case& each : cases) {
    const std::string shown = each.features.substr(0, 60);
    for (const bool item : {true, false}) {
      const TestReply reply = item ? Put(each.features) : Rank("bad", each.features);
      EXPECT_EQ(reply.status, 400) << shown << ": " << reply.body.substr(0, 300);
      EXPECT_LT(reply.body.size(), 2000U) << shown;
      EXPECT_EQ(reply.Error("code"), "BadArgument") << shown;
      const std::string field = item ? "features" : "contextFeatures";
      EXPECT_EQ(reply.Error("field").substr(0, (field + each.field).size()), field + each.field)
          << shown;
      EXPECT_NE(reply.Error("message").find(each.expected), std::string::npos)
          << shown << ": " << reply.body;
    }
  }
  EXPECT_EQ(Put(R"({"a":")" + megabyte + megabyte + R"("})").status, 413);
  EXPECT_EQ(Columns(), before);
  EXPECT_EQ(engine_->Stats().pending, stats.pending);
  EXPECT_EQ(engine_->Stats().committed_sequence, stats.committed_sequence);
  EXPECT_EQ(engine_->Stats().items, stats.items);
  Start();
  EXPECT_EQ(Columns(), before);
  EXPECT_EQ(Rank("good", R"({"device":"phone"})").Json()["ranking"][0]["id"], "jazz");
}

TEST_F(BadFeaturesTest, ANumberWhereAWordWasIsAColumnOfItsOwn) {
  TeachSomething();
  ASSERT_EQ(Put(R"({"genre":7,"price":"cheap"})").status, 204);
  ASSERT_EQ(Rank("e", R"({"device":3})").status, 200);
  ASSERT_EQ(Ask("POST", "/v1/events/e/reward", R"({"value":1})").status, 200);
  std::vector<std::string> names;
  const json report = json::parse(Columns());
  for (const json& column : report["columns"]) {
    if (column["kind"] != "crossing") names.push_back(column["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"genre=jazz", "price", "genre=rock", "device=phone",
                                             "genre", "price=cheap", "device"}));
  EXPECT_EQ(engine_->Stats().quarantined, 0U);
  // What was known still counts.
  EXPECT_EQ(
      Ask("POST", "/v1/rank",
          R"({"userId":"ann","actions":["jazz","rock"],"contextFeatures":{"device":"phone"}})")
          .Json()["ranking"][0]["id"],
      "jazz");
}

std::size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

// A million names, 4000 in a request, of contexts, of items and of actions: each is taken.
TEST_F(BadFeaturesTest, AMillionNamesTakeBoundedMemory) {
  TeachSomething();
  const auto names = [](int request) {
    std::string text = "{";
    for (int i = 0; i < 4000; ++i) text += fmt::format("\"n{}\":1,", request * 4000 + i);
    text.back() = '}';
    return text;
  };
  std::size_t early = 0;
  std::uint64_t sequence = 0;
  for (int request = 0; request < 250; ++request) {
    const std::string body =
        request % 2 == 0
            ? R"({"userId":"eve","contextFeatures":)" + names(request) + "}"
            : R"({"userId":"eve","actions":["jazz",{"id":"y","features":)" + names(request) + "}]}";
    const TestReply rank = Ask("POST", "/v1/rank", body);
    ASSERT_EQ(rank.status, 200) << rank.body.substr(0, 300);
    const engine::EngineStats stats = engine_->Stats();
    ASSERT_LE(stats.dim, 64U + 16U);
    ASSERT_LE(stats.sharing_names, 1000U);
    if (request == 50) early = ResidentBytes();
    if (request == 50) sequence = stats.committed_sequence;
  }
  // Names that share are listed up to the 1000th; from then on there is nothing to log.
  EXPECT_EQ(engine_->Stats().committed_sequence, sequence);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(ResidentBytes(), early + (std::size_t{64} << 20));
#else
  static_cast<void>(early);
#endif
  EXPECT_TRUE(engine_->Check().ok());
  EXPECT_EQ(Rank("good", R"({"device":"phone"})").Json()["ranking"][0]["id"], "jazz");
}

}  // namespace
}  // namespace codband::server
