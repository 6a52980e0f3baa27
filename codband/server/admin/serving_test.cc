#include "codband/server/admin/serving.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "codband/base/file.h"
#include "codband/server/admin/admin_testing.h"
#include "codband/server/admin/data_directory.h"

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
