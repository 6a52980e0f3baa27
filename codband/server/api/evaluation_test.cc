// Logs that were made to harm: what a key that may only read can send.
#include "codband/server/api/evaluation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

constexpr std::string_view kNdjson = "Content-Type: application/x-ndjson\r\n";

// A decision with these candidates and this context, both JSON.
std::string Decision(std::string_view candidates, std::string_view context = "") {
  return fmt::format(
      R"({{"_label_cost":-1,"_label_probability":0.5,"_labelIndex":0,"c":{{{}"_multi":[{}]}}}})"
      "\n",
      context, candidates);
}

class HostileLogTest : public ServerFixture {
 protected:
  void SetUp() override { Start(); }
  TestReply Evaluate(std::string_view log, std::string_view query = "policies=uniform") {
    return Request("POST", fmt::format("/v1/evaluate?{}", query), log, kNdjson);
  }
};

TEST_F(HostileLogTest, NestingHasAnEnd) {
  const std::string good = Decision(R"({"_tag":"a"},{"_tag":"b"})");
  ASSERT_EQ(Evaluate(good).status, 200);
  constexpr std::size_t kDeep = 200'000;
  for (const auto& [open, close] : {std::pair(R"({"a":)", "}"), std::pair("[", "]")}) {
    std::string nested;
    for (std::size_t i = 0; i < kDeep; ++i) nested += open;
    nested += '1';
    for (std::size_t i = 0; i < kDeep; ++i) nested += close;
    for (const std::string& log :
         {Decision(fmt::format(R"({{"x":{}}})", nested)), Decision(nested),
          Decision("1", fmt::format(R"("x":{},)", nested)), nested + "\n"}) {
      const TestReply reply = Evaluate(log);
      EXPECT_EQ(reply.status, 400);
      EXPECT_NE(reply.body.find("nests deeper than"), std::string::npos) << reply.body;
    }
  }
  EXPECT_EQ(Evaluate(good).status, 200);
}

TEST_F(HostileLogTest, NamesWithoutEndAreNoFault) {
  const std::string name(100'000, 'x');
  EXPECT_EQ(Evaluate(Decision(fmt::format(R"({{"{}":1}},{{"b":2}})", name),
                              fmt::format(R"("{}":"{}",)", name, name)))
                .status,
            200);
}

TEST_F(HostileLogTest, TheServersOwnLogsMayBeTooLarge) {
  std::filesystem::create_directories(directory_ / "log");
  const std::filesystem::path file = directory_ / "log" / "decisions-1.json";
  std::ofstream(file) << Decision(R"({"_tag":"a"})");
  std::filesystem::resize_file(file, kMostLogBytes + 1);  // takes no room on disk
  auto server = StartServer(engine_, {.port = 0}, {.log_directory = directory_ / "log"});
  ASSERT_TRUE(server.ok());
  server_ = std::move(server).value();
  const TestReply reply = Request("POST", "/v1/evaluate?log=all&policies=uniform");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.Error("field"), "log") << reply.body;
}

// Uploads wait on disk: a few at a time.
TEST_F(HostileLogTest, OnlyAFewAreOnTheirWay) {
  std::vector<TestClient> uploads;
  for (int i = 0; i < EvaluationDesk::kMost; ++i) {
    uploads.push_back(Connect());
    uploads.back().Send(
        "POST /v1/evaluate?policies=uniform HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/x-ndjson\r\nExpect: 100-continue\r\n"
        "Content-Length: 1000\r\n\r\n");
    uploads.back().ReceiveUntil("HTTP/1.1 100", "\r\n\r\n");
  }
  const std::string good = Decision(R"({"_tag":"a"},{"_tag":"b"})");
  EXPECT_EQ(Evaluate(good).status, 503);
  uploads.clear();
  while (Evaluate(good).status == 503) {  // until the server has noticed
  }
  EXPECT_EQ(Evaluate(good).status, 200);
}

// The files that this process has open of uploads and has written to; of one without a name the
// kernel says so.
std::vector<std::string> OpenUploads() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    if (file.find("codband-log-") == file.npos) continue;
    if (std::filesystem::file_size(entry.path(), gone) > 0 && !gone) files.push_back(file);
  }
  return files;
}

TEST_F(HostileLogTest, OfAnUploadNothingIsLeftByAKill) {
  TestClient upload = Connect();
  upload.Send(
      "POST /v1/evaluate?policies=uniform HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n{");
  std::vector<std::string> files;
  while (files.empty()) files = OpenUploads();
  EXPECT_TRUE(files[0].ends_with(" (deleted)")) << files[0];
}

// A server that stops does not wait for an evaluation that takes hours.
TEST_F(HostileLogTest, AnEvaluationEndsWithTheServer) {
  std::string wide;
  for (int i = 0; i < 250; ++i) wide += fmt::format(R"({}"x{}":1)", i == 0 ? "" : ",", i);
  std::string log;
  for (int i = 0; i < 5000; ++i) {
    log += Decision(fmt::format(R"({{"_tag":"a",{}}},{{"_tag":"b",{}}})", wide, wide));
  }
  TestClient client = Connect();
  client.Send(
      fmt::format("POST /v1/evaluate?policies=codband HTTP/1.1\r\nHost: localhost\r\n"
                  "{}Content-Length: {}\r\n\r\n{}",
                  kNdjson, log.size(), log));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // it has begun
  server_->Stop();
  const TestReply reply = client.Receive();
  EXPECT_EQ(reply.status, 503) << reply.body;
}

}  // namespace
}  // namespace codband::server
