#include "codband/server/api/reply_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "codband/base/random.h"
#include "codband/server/api/json_writer.h"

namespace codband::server {
namespace {

using nlohmann::json;

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

std::string Number(double value) {
  std::string out;
  AppendJsonNumber(out, value);
  return out;
}

TEST(ReplyJsonTest, StringsAreEscaped) {
  EXPECT_EQ(Quoted("plain"), "\"plain\"");
  EXPECT_EQ(Quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(Quoted("\n\r\t\b\x01\x1f"), R"("\n\r\t\u0008\u0001\u001f")");
  EXPECT_EQ(Quoted(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(Quoted("Björk 日本 🎵"), "\"Björk 日本 🎵\"");
}

TEST(ReplyJsonTest, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(Quoted("a\xff"
                   "b"),
            "\"a\xEF\xBF\xBD"
            "b\"");
  for (const char* bad :
       {"\xc3", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80"}) {
    EXPECT_TRUE(json::accept(Quoted(bad)));
    EXPECT_NE(Quoted(bad).find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(ReplyJsonTest, EveryByteStringIsValidJson) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_TRUE(json::accept(Quoted(text))) << first << ' ' << second;
    }
  }
}

TEST(ReplyJsonTest, ATextIsPlainIfAllOfItsCharactersAre) {
  for (std::size_t size = 1; size < 20; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'z');
        text[place] = static_cast<char>(byte);
        ASSERT_EQ(IsPlainInJson(text), IsPlainInJson(text[place])) << byte << " at " << place;
      }
    }
  }
}

TEST(ReplyJsonTest, NumbersReadBackTheSame) {
  for (const double value : {0.0, 1.0, -1.0, 0.1, 1.0 / 3, 1e22, 5e-324, 1.7976931348623157e308,
                             123456789.123456789, 1e-7}) {
    EXPECT_EQ(json::parse(Number(value)).get<double>(), value) << Number(value);
  }
  RandomStream random({.seed = 1}, 0);
  for (int i = 0; i < 100'000; ++i) {
    const double value = (random.Uniform() - 0.5) * std::pow(10.0, 40 * random.Uniform() - 20);
    const std::string text = Number(value);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    ASSERT_TRUE(json::accept(text)) << text;
    ASSERT_LE(text.size(), 24u) << text;
  }
}

TEST(ReplyJsonTest, NumbersAreInPlainNotationWhereThatIsShort) {
  EXPECT_EQ(Number(0.1), "0.1");
  EXPECT_EQ(Number(-0.1), "-0.1");
  EXPECT_EQ(Number(0), "0");
  EXPECT_EQ(Number(-0.0), "-0");
  EXPECT_EQ(Number(3), "3");
  EXPECT_EQ(Number(-12000), "-12000");
  EXPECT_EQ(Number(0.00025), "0.00025");
  EXPECT_EQ(Number(1234.5), "1234.5");
  EXPECT_EQ(Number(100000000000000), "100000000000000");
  EXPECT_EQ(Number(1e100), "1e+100");
}

TEST(ReplyJsonTest, NoNumberIsNull) {
  EXPECT_EQ(Number(std::nan("")), "null");
  EXPECT_EQ(Number(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(Number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(ReplyJsonTest, RankReply) {
  engine::RankReply reply;
  reply.event_id = "e";
  reply.reward_action_id = "b\"";
  reply.ranking = {{"b\"", 0.75, 2, 1, 0.5}};
  std::string out = "kept";
  AppendRankReply(out, reply);
  EXPECT_EQ(
      out, R"(kept{"eventId":"e","rewardActionId":"b\"","ranking":[{"id":"b\"","probability":0.75,)"
           R"("score":2,"mean":1,"width":0.5}],"modelId":null})");
  reply.model = 18'446'744'073'709'551'614u;
  reply.explanation = engine::Explanation{.contributions = {{"genre=rock", 0.5}, {"3", -0.25}},
                                          .intercept = 1,
                                          .group_users = 2,
                                          .group_observations = 9,
                                          .last_change_ms = std::nullopt};
  out.clear();
  AppendRankReply(out, reply);
  const json parsed = json::parse(out);
  EXPECT_EQ(parsed["modelId"], 18'446'744'073'709'551'614u);
  EXPECT_EQ(parsed["explanation"],
            json::parse(R"({"contributions":[{"feature":"genre=rock","value":0.5},
              {"feature":"3","value":-0.25}],"intercept":1,"item":0,"groupUsers":2,"groupObservations":9,
              "lastChange":null})"));
  reply.explanation->last_change_ms = 0;
  out.clear();
  AppendRankReply(out, reply);
  EXPECT_EQ(json::parse(out)["explanation"]["lastChange"], "1970-01-01T00:00:00.000Z");
}

TEST(ReplyJsonTest, RankingsOfLongAndStrangeValuesAreWhole) {
  engine::RankReply reply;
  const double longest = -1.2345678901234567e-300;
  const double rounded = -1.2345678e-30;  // scores, means and widths have single precision
  for (int i = 0; i < 300; ++i) {
    reply.ranking.push_back(
        {std::string(256, static_cast<char>(i)), longest, rounded, std::nan(""), rounded * i});
  }
  std::string out;
  AppendRankReply(out, reply);
  const json ranking = json::parse(out)["ranking"];
  ASSERT_EQ(ranking.size(), 300u);
  EXPECT_EQ(ranking[65]["id"], std::string(256, 'A'));
  EXPECT_EQ(ranking[1]["probability"], longest);
  EXPECT_EQ(ranking[1]["score"].get<float>(), static_cast<float>(rounded));
  EXPECT_TRUE(ranking[1]["mean"].is_null());
  EXPECT_EQ(ranking[2]["width"].get<float>(), static_cast<float>(rounded * 2));
  EXPECT_LT(ranking[2]["width"].dump().size(), 16u);
}

TEST(ReplyJsonTest, RewardReply) {
  std::string out;
  AppendRewardReply(out, "e", {.outcome = engine::RewardOutcome::kAccepted, .sequence = 7});
  EXPECT_EQ(out, R"({"eventId":"e","status":"accepted","sequence":7})");
  out.clear();
  AppendRewardReply(out, "e", {.outcome = engine::RewardOutcome::kDuplicate});
  EXPECT_EQ(out, R"({"eventId":"e","status":"duplicate","sequence":0})");
}

TEST(ReplyJsonTest, Item) {
  std::string out;
  AppendItem(out, {"x", {1, 0.5}, {{"g=w", 1}}, {"t"}});
  EXPECT_EQ(out,
            R"({"id":"x","features":[1,0.5],"named":[{"name":"g=w","value":1}],"tags":["t"]})");
  out.clear();
  AppendItem(out, {"x", {}, {}, {}});
  EXPECT_EQ(out, R"({"id":"x","features":[],"tags":[]})");
}

TEST(ReplyJsonTest, User) {
  std::string out;
  AppendUser(out, {.user = "u",
                   .model = 2,
                   .model_chance = 0.75,
                   .since_ms = 1'562'500'800'123,
                   .observations = 5,
                   .period_observations = 3,
                   .first_ms = 1'562'500'700'000,
                   .changes = {{"u", 1'562'500'800'123, 1, 2, {8, 0.75F, 0.125F, 0.5F}}},
                   .ticks = {{1'562'500'800'000, 1, 0.5F}}});
  EXPECT_EQ(json::parse(out), json::parse(R"({"userId":"u","modelId":2,"modelChance":0.75,
              "firstSeen":"2019-07-07T11:58:20.000Z",
              "since":"2019-07-07T12:00:00.123Z","observations":5,"periodObservations":3,
              "changes":[{"time":"2019-07-07T12:00:00.123Z","fromModelId":1,"toModelId":2,
                          "evidence":{"rewards":8,"expected":0.75,"got":0.125,"before":0.5}}],
              "lastRewards":[{"time":"2019-07-07T12:00:00.000Z","reward":1,"expected":0.5}]})"));
}

TEST(ReplyJsonTest, Models) {
  const engine::ModelReport model{.id = 4,
                                  .popularity = 0.5,
                                  .users = 1,
                                  .periods = 2,
                                  .observations = 3,
                                  .parameter = {0.25},
                                  .items = {{"a", 0.9}},
                                  .worst = {{"z", -1}},
                                  .tags = {{"t", 7, 2}}};
  json expected = json::parse(R"({"modelId":4,"popularity":0.5,"users":1,"periods":2,
    "observations":3,"topItems":[{"id":"a","mean":0.9}],"bottomItems":[{"id":"z","mean":-1}],
    "topTags":[{"tag":"t","count":7,"lift":2}]})");
  std::string out;
  AppendModels(out, std::vector<engine::ModelReport>{model, model});
  EXPECT_EQ(json::parse(out), (json{{"models", {expected, expected}}}));
  out.clear();
  AppendModel(out, model);
  expected["parameter"] = {0.25};
  EXPECT_EQ(json::parse(out), expected);
  out.clear();
  AppendModels(out, {});
  EXPECT_EQ(out, R"({"models":[]})");
}

TEST(ReplyJsonTest, ChangesNameTheUser) {
  std::string out;
  AppendChanges(out, std::vector<engine::Change>{{"u", 1, kNoModel, 0}});
  EXPECT_EQ(out, R"({"changes":[{"time":"1970-01-01T00:00:00.001Z","userId":"u",)"
                 R"("fromModelId":null,"toModelId":0}]})");
}

TEST(ReplyJsonTest, ErrorLeavesOutWhatThereIsNot) {
  std::string out;
  AppendError(out, {.status = 404, .code = "NotFound", .message = "none"});
  EXPECT_EQ(out, R"({"error":{"code":"NotFound","message":"none"}})");
  out.clear();
  AppendError(out, {.status = 400, .code = "BadArgument", .field = "f", .message = "m\xff"},
              ImportProgress{.line = 3, .imported = 0});
  EXPECT_EQ(out,
            "{\"error\":{\"code\":\"BadArgument\",\"field\":\"f\",\"message\":\"m\xEF\xBF\xBD\","
            "\"line\":3,\"imported\":0}}");
}

}  // namespace
}  // namespace codband::server
