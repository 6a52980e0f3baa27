#include "codband/server/api/history_json.h"

#include <gtest/gtest.h>

namespace codband::server {
namespace {

Result<std::vector<HistoryEvent>> Read(std::string_view body) {
  JsonParser parser;
  return ParseHistory(parser, body, 4);
}

std::string FaultIn(std::string_view body) {
  const auto events = Read(body);
  return events.ok() ? "" : events.status().message();
}

TEST(HistoryJsonTest, EventsKeepTheirOrderAndFields) {
  const auto events = Read(
      R"({"events":[{"userId":"ada","itemId":"a","value":1.5,"eventId":"e"},
                    {"itemId":"b","value":-2,"userId":"bob","features":[1,2,3,4]}]})");
  ASSERT_TRUE(events.ok()) << events.status().message();
  ASSERT_EQ(events.value().size(), 2U);
  EXPECT_EQ(events.value()[0].id, "e");
  EXPECT_EQ(events.value()[0].user, "ada");
  EXPECT_EQ(events.value()[0].item.id, "a");
  EXPECT_TRUE(events.value()[0].item.features.empty());
  EXPECT_EQ(events.value()[0].value, 1.5);
  EXPECT_EQ(events.value()[1].item.features, (std::vector<double>{1, 2, 3, 4}));
}

TEST(HistoryJsonTest, NamedFeaturesAreReadAsThoseOfItems) {
  const auto events =
      Read(R"({"events":[{"userId":"u","itemId":"a","value":1,"features":{"genre":"rock"}}]})");
  ASSERT_TRUE(events.ok()) << events.status().message();
  ASSERT_EQ(events.value()[0].item.named.size(), 1U);
  EXPECT_EQ(events.value()[0].item.named[0].name, "genre=rock");
}

TEST(HistoryJsonTest, IdIsMadeOfUserItemValueAndTime) {
  const auto id = [](std::string_view rest) {
    const auto events =
        Read(R"({"events":[{"userId":"u","itemId":"a",)" + std::string(rest) + "}]}");
    return events.value()[0].id;
  };
  EXPECT_EQ(id(R"("value":1)"), id(R"("value":1.0)"));
  EXPECT_NE(id(R"("value":1)"), id(R"("value":2)"));
  EXPECT_NE(id(R"("value":1)"), id(R"("value":1,"time":"monday")"));
}

TEST(HistoryJsonTest, WrongRequestsNameTheField) {
  EXPECT_EQ(FaultIn(R"({"events":[{"userId":"u","itemId":"a"}]})"), "events[0].value: is missing");
  EXPECT_EQ(FaultIn(R"({"events":[{"itemId":"a","value":1}]})"), "events[0].userId: is missing");
  EXPECT_EQ(FaultIn(R"({"events":[{"userId":"u","value":1}]})"), "events[0].itemId: is missing");
  EXPECT_NE(
      FaultIn(R"({"events":[{"userId":"u","itemId":"a","value":"x"}]})").find("events[0].value: "),
      std::string::npos);
  EXPECT_NE(FaultIn(R"({"events":[{"userId":"u","itemId":"a","value":1,"features":[1]}]})")
                .find("events[0].features: has 1 numbers"),
            std::string::npos);
  EXPECT_NE(
      FaultIn(R"({"events":[{"userId":"u","itemId":"a","value":1,"colour":2}]})").find("colour"),
      std::string::npos);
  EXPECT_NE(FaultIn(R"({"events":[]})").find("events: has none"), std::string::npos);
  EXPECT_NE(FaultIn(R"({"events":{}})").find("events: "), std::string::npos);
  EXPECT_NE(FaultIn(R"({"items":[]})").find("items"), std::string::npos);
}

TEST(HistoryJsonTest, ReplyTellsWhatWasLeftOut) {
  std::string out;
  AppendHistoryReply(out, {.accepted = 3, .duplicates = 1, .skipped = {{2, "a \"b\""}, {5, "c"}}});
  EXPECT_EQ(out, R"({"accepted":3,"duplicates":1,"skipped":[{"index":2,"reason":"a \"b\""},)"
                 R"({"index":5,"reason":"c"}],"status":"ok"})");
}

}  // namespace
}  // namespace codband::server
