#include "codband/server/admin/serving.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "codband/base/file.h"
#include "codband/server/admin/admin_testing.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/http/http_client.h"

namespace codband::server {
namespace {

class ServingTest : public AdminTest {
 protected:
  ServeConfig Config() const {
    ServeConfig config;
    config.data = data();
    config.server.port = 0;
    config.engine.dim = 2;
    config.engine.sync = false;
    return config;
  }
};

TEST_F(ServingTest, AnswersUntilItIsStopped) {
  auto serving = Serving::Start(Config()).value();
  EXPECT_TRUE(serving->warm());
  const auto running = FindRunningServer(data());
  ASSERT_TRUE(running.has_value());
  EXPECT_EQ(running->url, serving->url());
  EXPECT_NE(serving->Greeting().find("listens on " + serving->url()), std::string::npos);
  EXPECT_EQ(serving->DecisionLogNews(), std::nullopt);
  EXPECT_TRUE(serving->Stop().ok());
  EXPECT_TRUE(serving->Stop().ok());  // a second time is fine
  EXPECT_FALSE(ReadServerNote(data()).has_value());
  EXPECT_TRUE(OpenDataStore(data(), {.create = false}).ok()) << "the directory is free again";
}

TEST_F(ServingTest, APortInUseIsRefusedUnlessAnyWillDo) {
  const auto first = Serving::Start(Config()).value();
  ServeConfig config = Config();
  config.data = path("other");
  config.server.port = static_cast<std::uint16_t>(std::stoi(first->url().substr(17)));
  const auto refused = Serving::Start(config);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(refused.status().message().find("--listen HOST:PORT"), std::string::npos)
      << refused.status().message();
  EXPECT_FALSE(ReadServerNote(path("other")).has_value());
  const auto moved = Serving::Start(config, {.any_port = true});
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_NE(moved.value()->url(), first->url());
}

TEST_F(ServingTest, ASecondServerLeavesTheNoteOfTheFirst) {
  const auto first = Serving::Start(Config()).value();
  EXPECT_EQ(Serving::Start(Config()).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReadServerNote(data())->url, first->url());
}

TEST_F(ServingTest, AnotherDimensionIsRefusedWithTheSetting) {
  { const auto serving = Serving::Start(Config()).value(); }
  ServeConfig config = Config();
  config.engine.dim = 3;
  const auto refused = Serving::Start(config);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("features.dimension is 3"), std::string::npos)
      << refused.status().message();
}

// Clients are told that something is wrong, and not where the server keeps its files.
TEST_F(ServingTest, PathsAreHiddenAlsoIfTheDataDirectoryIsRelative) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(path(""));
  ServeConfig config = Config();
  config.data = "data";
  const auto serving = Serving::Start(config).value();
  std::filesystem::current_path(before);
  std::filesystem::rename(data() / "rocksdb", data() / "gone");
  auto client = HttpClient::Connect(ParseHttpUrl(serving->url()).value(), std::chrono::seconds(60));
  const auto reply = client.value()->Send(
      {.method = "POST", .target = "/v1/backup", .body = R"({"name":"monday"})"},
      std::chrono::seconds(60));
  std::filesystem::rename(data() / "gone", data() / "rocksdb");
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_GE(reply.value().status, 500U) << reply.value().body;
  EXPECT_NE(reply.value().body.find("<path>"), std::string::npos) << reply.value().body;
  EXPECT_EQ(reply.value().body.find("rocksdb"), std::string::npos) << reply.value().body;
}

TEST_F(ServingTest, ADecisionLogThatCannotBeOpenedIsAnError) {
  ServeConfig config = Config();
  config.decision_log.directory = "/proc/nothing";
  EXPECT_FALSE(Serving::Start(config).ok());
  EXPECT_FALSE(std::filesystem::exists(data())) << "nothing was created";
}

TEST_F(ServingTest, ADemoSaysWhatToTry) {
  const auto serving = Serving::Start(Config(), {.demo = true}).value();
  EXPECT_NE(serving->Greeting().find("/v1/rank?explain=true"), std::string::npos);
}

}  // namespace
}  // namespace codband::server
