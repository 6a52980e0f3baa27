// What operators and senders are told when something is wrong, by the real program.
#include <sstream>
#include <string>
#include <vector>

#include "tests/serve_cli_testing.h"

namespace codband {
namespace {

TEST_F(ServeCliTest, LinesForTheOperatorAreTextOrJson) {
  {
    Serving server(Path("log"), Arguments());
    EXPECT_TRUE(server.WaitFor(" info start serves " + Path("data") + " at http://127.0.0.1:"));
    EXPECT_EQ(server.Stop(SIGTERM), 0);
    EXPECT_NE(server.output().find(" info stop stopped cleanly\n"), std::string::npos)
        << server.output();
  }
  Serving server(Path("log"), Arguments("--set log.format=json --set log.level=info"));
  EXPECT_EQ(server.Send({.target = "/v1/health/live"}).status, 200U);
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  std::vector<std::string> causes;
  std::istringstream lines(server.output());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) causes.push_back(Json::parse(line).at("cause"));
  }
  EXPECT_EQ(causes, (std::vector<std::string>{"config", "start", "stop", "stop"}))
      << server.output();
  EXPECT_EQ(Run("serve --set log.level=loud").exit_code, 2);
}

// One request within the limits of before: an action of 1e9 in each feature, and its reward.
TEST_F(ServeCliTest, AnOutlierStopsNeitherLearningNorTheNextStart) {
  const auto visit = [](Serving& server, int number, const std::string& actions) {
    const std::string event = "v" + std::to_string(number);
    const server::HttpReply rank = server.Send(
        {.method = "POST",
         .target = "/v1/rank",
         .body = R"({"userId":"u","eventId":")" + event + R"(","actions":[)" + actions + "]}"});
    if (rank.status != 200) return rank.status;
    return server
        .Send({.method = "POST",
               .target = "/v1/events/" + event + "/reward",
               .body = Json{{"value", 1}}.dump()})
        .status;
  };
  const std::string normal =
      R"({"id":"a","features":[1,0,0.5,0]},{"id":"b","features":[0,1,0,0.5]})";
  const std::string outlier = R"({"id":"x","features":[1e9,1e9,1e9,1e9]})";
  {
    Serving server(Path("log"), Arguments());
    EXPECT_EQ(visit(server, 0, outlier), 400U) << "out of the range of features";
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const std::string wide = Arguments("--set features.max_abs=1e15");
  for (int start = 0; start < 2; ++start) {
    Serving server(Path("log"), wide);
    for (int i = 1; i <= 40; ++i) {
      const unsigned status = visit(server, 100 * start + i, i == 10 ? outlier : normal);
      EXPECT_TRUE(status == 200 || status == 422) << i << ": " << status << server.output();
    }
    EXPECT_EQ(server.Send({.target = "/v1/health/ready"}).status, 200U) << server.output();
    EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);
  }
  Serving server(Path("log"), wide);
  EXPECT_EQ(server.Send({.target = "/v1/health/ready"}).status, 200U) << server.output();
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  EXPECT_EQ(Run("doctor --data " + Path("data")).exit_code, 0);
}

TEST_F(ServeCliTest, RewardsOutOfTheirRangeAreRefusedOrClipped) {
  for (const std::string mode : {"refuse", "clip"}) {
    Serving server(Path("log"), Arguments("--set rewards.min=0 --set rewards.max=1 --set "
                                          "rewards.out_of_range=" +
                                          mode));
    const std::string event = "event-" + mode;
    ASSERT_EQ(server
                  .Send({.method = "POST",
                         .target = "/v1/rank",
                         .body = R"({"userId":"u","eventId":")" + event +
                                 R"(","actions":[{"id":"a","features":[1,0,0,0]}]})"})
                  .status,
              200U);
    const server::HttpReply reply = server.Send({.method = "POST",
                                                 .target = "/v1/events/" + event + "/reward",
                                                 .body = Json{{"value", 7}}.dump()});
    EXPECT_EQ(reply.status, mode == "clip" ? 200U : 400U) << reply.body;
    if (mode == "refuse") {
      EXPECT_NE(reply.body.find("is 7, expected a number from 0 to 1"), std::string::npos)
          << reply.body;
    }
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  EXPECT_EQ(Run("serve " + Arguments("--set rewards.min=2 --set rewards.max=1")).exit_code, 2);
}

}  // namespace
}  // namespace codband
