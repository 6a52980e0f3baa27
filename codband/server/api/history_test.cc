#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

class HistoryTest : public ServerFixture {
 protected:
  void SetUp() override { Start(); }
};

constexpr std::string_view kThreeEvents = R"({"events":[
    {"userId":"ann","itemId":"a","value":1},
    {"userId":"bob","itemId":"a","value":0},
    {"userId":"eve","itemId":"b","value":1,"eventId":"late"}]})";

TEST_F(HistoryTest, CountsWhatBecameOfTheEvents) {
  const TestReply reply = Request("POST", "/v1/history", kThreeEvents);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.Json()["accepted"], 2);
  EXPECT_EQ(reply.Json()["skipped"][0]["index"], 2);
  EXPECT_EQ(Request("POST", "/v1/history", kThreeEvents).Json()["duplicates"], 2);
}

// The calls before the one that fails are on their way: what they complete must still be there.
TEST_F(HistoryTest, AnEventThatFailsWaitsForThoseBefore) {
  engine_.Hold();
  TestReply reply;
  std::atomic<bool> replied = false;
  std::thread client([&] {
    reply = Request("POST", "/v1/history", R"({"events":[
        {"userId":"ann","itemId":"a","value":1},
        {"userId":"bob","itemId":"a","value":1},
        {"userId":"memory","itemId":"a","value":1}]})");
    replied = true;
  });
  engine_.AwaitWaiting(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(replied);
  engine_.Release();
  client.join();
  EXPECT_EQ(reply.status, 503) << reply.body;
  EXPECT_EQ(Request("POST", "/v1/history", kThreeEvents).status, 200);
}

}  // namespace
}  // namespace codband::server
