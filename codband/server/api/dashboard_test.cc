// What the dashboard needs: its files, sessions, curves, news, evaluations.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "codband/server/api/evaluation.h"
#include "codband/server/api/web_bundle.h"
#include "codband/server/config/settings_json.h"
#include "codband/server/keys/key_gate.h"
#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

class DashboardTest : public ServerFixture {};

TEST_F(DashboardTest, FilesAreCompressedForThoseWhoTakeIt) {
  Start();
  for (const auto& [path, file] : std::map<std::string, const WebFile*>{
           {"/", &kWebPage}, {"/app.js", &kWebScript}, {"/app.css", &kWebStyle}}) {
    const TestReply plain = Request("GET", path);
    EXPECT_EQ(plain.status, 200);
    EXPECT_EQ(plain.body, file->plain);
    EXPECT_TRUE(plain.Has("Content-Security-Policy: default-src 'none'"));
    EXPECT_FALSE(plain.Has("unsafe"));
    if (file->gzip.empty()) continue;  // built without the dashboard
    const TestReply gzip = Request("GET", path, "", "Accept-Encoding: deflate, gzip\r\n");
    EXPECT_EQ(gzip.body, file->gzip);
    EXPECT_TRUE(gzip.Has("Content-Encoding: gzip\r\n"));
    EXPECT_EQ(Request("GET", path, "", "Accept-Encoding: gzip;q=0\r\n").body, file->plain);
  }
}

TEST_F(DashboardTest, StatsHaveMeansIntervalsAndGroups) {
  Start();
  const TestReply reply = Request("GET", "/v1/stats?from=1562500800&to=1562504400&step=120");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto body = reply.Json();
  EXPECT_EQ(body["from"], "2019-07-07T12:00:00.000Z");
  EXPECT_EQ(body["stepSeconds"], 120);
  const auto& point = body["points"][0];
  EXPECT_EQ(point["time"], "2019-07-07T12:00:00.000Z");
  EXPECT_EQ(point["decisions"], 4);
  EXPECT_EQ(point["rewards"]["count"], 2);
  EXPECT_EQ(point["rewards"]["mean"], 0.5);
  EXPECT_LT(point["rewards"]["low"], 0.5);
  EXPECT_EQ(point["rewardsBy"][0]["source"], "policy");
  EXPECT_FALSE(point["baseline"].contains("mean")) << "there is no estimate";
  EXPECT_EQ(point["groups"][0]["users"], 2);
  EXPECT_EQ(body["total"]["decisions"], 4);
}

TEST_F(DashboardTest, WrongParametersOfStatsAreNamed) {
  Start();
  const auto field = [&](const std::string& query) {
    const TestReply reply = Request("GET", "/v1/stats?" + query);
    EXPECT_EQ(reply.status, 400) << query;
    return reply.Error("field");
  };
  for (const char* step : {"0", "61", "-60", "x", "172800"}) {
    EXPECT_EQ(field(std::string("step=") + step), "step");
  }
  EXPECT_EQ(field("from=yesterday"), "from");
  EXPECT_EQ(field("to=x"), "to");
  EXPECT_EQ(field("from=2000&to=1000"), "from");
  EXPECT_EQ(field("from=0&to=1562504400&step=60"), "step");
  EXPECT_EQ(field("until=5"), "query");
}

TEST_F(DashboardTest, NewsComeAgainAndAgainAndEndWithTheServer) {
  Start();
  TestClient client = Connect();
  client.Send("GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const TestReply head = client.Receive();
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.Has("Content-Type: text/event-stream\r\n"));
  EXPECT_FALSE(head.Has("Content-Length"));
  const auto body = nlohmann::json::parse(client.ReceiveUntil("event: live\ndata: ", "\n\n"));
  EXPECT_EQ(body["stats"]["users"], 3);
  EXPECT_EQ(body["changes"][0]["userId"], "<b>eve</b>");
  EXPECT_FALSE(client.ReceiveUntil("event: live\ndata: ", "\n\n").empty()) << "a second one";
  // Others are served meanwhile, and the server does not wait for it to end.
  EXPECT_EQ(Request("GET", "/v1/health/live").status, 200);
  server_->Stop();
  EXPECT_TRUE(client.EndsAtLast());
}

TEST_F(DashboardTest, ItemsAreFoundByTheBeginOfTheirIds) {
  Start();
  for (const char* id : {"a", "ab", "abc", "b", "hit"}) {
    ASSERT_EQ(Request("PUT", std::string("/v1/items/") + id, R"({"features":[1,2,3,4]})").status,
              204);
  }
  const auto found = [&](const std::string& query) {
    std::string ids;
    const auto page = Request("GET", "/v1/items?" + query).Json();
    for (const auto& item : page["items"]) ids += item["id"].get<std::string>() + " ";
    return ids + (page["next"].is_null() ? "end" : page["next"].get<std::string>());
  };
  EXPECT_EQ(found("prefix=ab"), "ab abc end");
  EXPECT_EQ(found("prefix=ab&limit=1"), "ab ab");
  EXPECT_EQ(found("prefix=ab&limit=1&after=ab"), "abc abc");
  EXPECT_EQ(found("prefix=x"), "end");
  for (const bool learned : {true, false}) {
    const std::string query = learned ? "prefix=hit&learned=true" : "prefix=hit";
    const auto page = Request("GET", "/v1/items?" + query).Json();
    EXPECT_EQ(page["items"][0].contains("learned"), learned);
  }
}

TEST_F(DashboardTest, WithoutKeysNobodyLogsIn) {
  Start();
  const auto session = Request("GET", "/v1/session").Json();
  EXPECT_EQ(session["keyRequired"], false);
  EXPECT_EQ(session["role"], "admin");
  EXPECT_EQ(Request("POST", "/v1/session", R"({"key":"x"})").status, 409);
  EXPECT_EQ(Request("GET", "/v1/keys").Json()["required"], false);
}

class SessionTest : public ServerFixture {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    for (const Access role : {Access::kRead, Access::kAdmin}) {
      keys_[role] = AddKey(file(), AccessText(role), role).value();
    }
    gate_ =
        KeyGate::Open({.file = file(), .max_failures = 3, .now = [this] { return now_; }}).value();
    Start({.gatekeeper = gate_.get()});
  }
  ~SessionTest() override { server_.reset(); }  // before its gatekeeper
  std::filesystem::path file() const { return directory_ / "keys"; }

  // The header of the cookie, and the token for writes.
  std::pair<std::string, std::string> Login(Access role) {
    const TestReply reply = Request("POST", "/v1/session", R"({"key":")" + keys_[role] + R"("})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    const std::size_t begin = reply.headers.find("Set-Cookie: ") + 12;
    const std::string cookie = reply.headers.substr(begin, reply.headers.find(';', begin) - begin);
    EXPECT_TRUE(reply.Has("; Path=/; HttpOnly; SameSite=Strict\r\n")) << reply.headers;
    return {"Cookie: other=1; " + cookie + "\r\n",
            "X-CSRF-Token: " + reply.Json()["csrfToken"].get<std::string>() + "\r\n"};
  }

  KeyFailures::Clock::time_point now_ = KeyFailures::Clock::time_point(std::chrono::hours(100));
  std::map<Access, std::string> keys_;
  std::unique_ptr<KeyGate> gate_;
};

TEST_F(SessionTest, HasTheRoleOfItsKey) {
  const auto [cookie, csrf] = Login(Access::kRead);
  EXPECT_EQ(Request("GET", "/v1/models").status, 401);
  EXPECT_EQ(Request("GET", "/v1/models", "", cookie).status, 200);
  EXPECT_EQ(Request("GET", "/v1/settings", "", cookie).status, 403);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie + csrf).status, 403);
  EXPECT_EQ(Request("GET", "/v1/session", "", cookie).Json()["role"], "read");
  EXPECT_EQ(Request("GET", "/v1/session").Json()["role"], nullptr);
}

TEST_F(SessionTest, WritesNeedItsToken) {
  const auto [cookie, csrf] = Login(Access::kAdmin);
  const auto [other_cookie, other_csrf] = Login(Access::kAdmin);
  const std::uint64_t before = engine_.calls();
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie).status, 403);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie).Error("field"), "X-CSRF-Token");
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie + other_csrf).status, 403);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie + "X-CSRF-Token: \r\n").status, 403);
  EXPECT_EQ(engine_.calls(), before);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", cookie + csrf).status, 204);
}

TEST_F(SessionTest, EndsByLogoutByItsKeyAndByTime) {
  const auto [out, out_csrf] = Login(Access::kRead);
  EXPECT_EQ(Request("DELETE", "/v1/session", "", out + out_csrf).status, 204);
  EXPECT_EQ(Request("GET", "/v1/models", "", out).status, 401);

  const auto [cookie, csrf] = Login(Access::kRead);
  const auto [admin, admin_csrf] = Login(Access::kAdmin);
  ASSERT_TRUE(RemoveKey(file(), "read").ok());
  ASSERT_TRUE(gate_->Reload(KeyGate::When::kChanged).ok());
  EXPECT_EQ(Request("GET", "/v1/models", "", cookie).status, 401);
  EXPECT_EQ(Request("GET", "/v1/models", "", admin).status, 200);
  now_ += std::chrono::hours(11);
  EXPECT_EQ(Request("GET", "/v1/models", "", admin).status, 200);
  now_ += std::chrono::hours(11);
  EXPECT_EQ(Request("GET", "/v1/models", "", admin).status, 200) << "it was used meanwhile";
  now_ += std::chrono::hours(13);
  EXPECT_EQ(Request("GET", "/v1/models", "", admin).status, 401);
}

TEST_F(SessionTest, ItsEndEndsItsNews) {
  const auto [cookie, csrf] = Login(Access::kRead);
  TestClient client = Connect();
  client.Send("GET /v1/live HTTP/1.1\r\nHost: localhost\r\n" + cookie + "\r\n");
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_FALSE(client.ReceiveUntil("event: live\ndata: ", "\n\n").empty());
  EXPECT_EQ(Request("DELETE", "/v1/session", "", cookie + csrf).status, 204);
  EXPECT_TRUE(client.EndsAtLast());
}

TEST_F(SessionTest, WrongKeysAreRefusedAndCounted) {
  for (int i = 0; i < 3; ++i) {
    const TestReply reply =
        Request("POST", "/v1/session", R"({"key":"guess )" + std::to_string(i) + R"("})");
    EXPECT_EQ(reply.status, 401);
    EXPECT_EQ(reply.Error("field"), "key");
    EXPECT_FALSE(reply.Has("Set-Cookie"));
  }
  EXPECT_EQ(Request("POST", "/v1/session", R"({"key":")" + keys_[Access::kRead] + R"("})").status,
            429);
  EXPECT_EQ(Request("POST", "/v1/session", R"({"word":"x"})").status, 400);
}

TEST_F(SessionTest, KeysAreListedWithoutTheKeys) {
  const auto [cookie, csrf] = Login(Access::kAdmin);
  const TestReply reply = Request("GET", "/v1/keys", "", cookie);
  const auto keys = reply.Json()["keys"];
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0]["name"], "read");
  EXPECT_EQ(keys[0]["lastUse"], nullptr);
  EXPECT_TRUE(keys[1]["lastUse"].is_string());
  for (const auto& [role, key] : keys_) EXPECT_EQ(reply.body.find(key), std::string::npos);
}

TEST(SessionsTest, AKeyEndsNoSessionsOfOthers) {
  Sessions sessions;
  Sessions::Clock::time_point now(std::chrono::hours(1));
  const std::string other = sessions.Open(MakeKeyRecord("b", Access::kAdmin, "other"), now);
  const KeyRecord key = MakeKeyRecord("a", Access::kRank, "secret");
  const std::string first = sessions.Open(key, now);
  for (std::size_t i = 1; i < 3 * Sessions::kMost; ++i) {
    const std::string last = sessions.Open(key, now += std::chrono::milliseconds(1));
    ASSERT_NE(sessions.Find(last, now), nullptr);
  }
  EXPECT_EQ(sessions.Find(first, now), nullptr);
  EXPECT_NE(sessions.Find(other, now), nullptr);
}

TEST(SessionsTest, TheQuietestGivesWay) {
  Sessions sessions;
  const KeyRecord key = MakeKeyRecord("a", Access::kRead, "secret");
  Sessions::Clock::time_point now(std::chrono::hours(1));
  const std::string first = sessions.Open(key, now);
  const std::string second = sessions.Open(key, now += std::chrono::seconds(1));
  EXPECT_NE(first, second);
  ASSERT_NE(sessions.Find(first, now += std::chrono::seconds(1)), nullptr);
  for (std::size_t i = 2; i <= Sessions::kMost; ++i) {
    const std::string name = std::to_string(i);
    sessions.Open(MakeKeyRecord(name, Access::kRead, name), now += std::chrono::seconds(1));
  }
  EXPECT_EQ(sessions.Find(second, now), nullptr);
  EXPECT_NE(sessions.Find(first, now), nullptr);
}

TEST(SettingsJsonTest, SaysWhereASettingComesFrom) {
  const auto config = ReadServeConfig(
      {.environment = {"CODBAND_REWARDS_WAIT_SECONDS=30", "CODBAND_API_KEY=a-secret-of-many-words"},
       .flags = {{"--set", "policy.seed", "7"}}});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  const std::string text = SettingsJson(config.value());
  EXPECT_EQ(text.find("a-secret"), std::string::npos);
  std::map<std::string, nlohmann::json> settings;
  const auto parsed = nlohmann::json::parse(text);
  for (const auto& each : parsed["settings"]) {
    settings[each["name"].get<std::string>()] = each;
  }
  EXPECT_EQ(settings.at("rewards.wait_seconds")["value"], 30);
  EXPECT_EQ(settings.at("rewards.wait_seconds")["origin"],
            "environment variable CODBAND_REWARDS_WAIT_SECONDS");
  EXPECT_EQ(settings.at("policy.seed")["value"], 7);
  EXPECT_EQ(settings.at("server.listen")["origin"], "default");
}

// A log in which "b" is better, and was shown half of the time.
std::string TwoArmLog() {
  std::string log;
  for (int i = 0; i < 400; ++i) {
    const bool b = i % 2 == 1;
    log += std::string(R"({"_label_cost":)") + (b && i % 8 != 7 ? "-1" : "0") +
           R"(,"_label_probability":0.5,"_label_Action":)" + (b ? "2" : "1") +
           R"(,"_labelIndex":)" + (b ? "1" : "0") +
           R"(,"Timestamp":"2019-07-07T12:00:00.0000000Z","Version":"1","EventId":"e)" +
           std::to_string(i) + R"(","a":)" + (b ? "[2,1]" : "[1,2]") +
           R"(,"c":{"User":{"id":"u"},"_multi":[{"_tag":"a","Features":{"x":1}},)" +
           R"({"_tag":"b","Features":{"y":1}}]},"p":[0.5,0.5]})" + "\n";
  }
  return log;
}

TEST_F(DashboardTest, EvaluatesALogThatIsSent) {
  Start();
  const std::string ndjson = "Content-Type: application/x-ndjson\r\n";
  const TestReply reply =
      Request("POST", "/v1/evaluate?policies=logged,first,codband", TwoArmLog(), ndjson);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto body = reply.Json();
  EXPECT_EQ(body["events"], 400);
  EXPECT_TRUE(body["verdict"].get<std::string>().starts_with("codband would have earned"))
      << body["verdict"];
  ASSERT_EQ(body["policies"].size(), 3U);
  EXPECT_EQ(body["policies"][0]["estimates"][0]["value"], 0.375);
  EXPECT_EQ(Request("POST", "/v1/evaluate", "not a log\n", ndjson).status, 400);
  EXPECT_EQ(Request("POST", "/v1/evaluate", "", ndjson).Error("field"), "log");
  EXPECT_EQ(Request("POST", "/v1/evaluate?policies=table:/etc/passwd", TwoArmLog(), ndjson)
                .Error("field"),
            "policies");
  EXPECT_EQ(Request("POST", "/v1/evaluate?policies=nonsense", TwoArmLog(), ndjson).Error("field"),
            "policies");
}

TEST_F(DashboardTest, EvaluatesTheServersOwnLogByItsNameAlone) {
  std::filesystem::create_directories(directory_ / "log");
  std::ofstream(directory_ / "log" / "decisions-1.json") << TwoArmLog();
  std::ofstream(directory_ / "secret.json") << TwoArmLog();
  auto server = StartServer(engine_, {.port = 0}, {.log_directory = directory_ / "log"});
  ASSERT_TRUE(server.ok());
  server_ = std::move(server).value();
  const auto logs = Request("GET", "/v1/logs").Json();
  EXPECT_EQ(logs["enabled"], true);
  ASSERT_EQ(logs["logs"].size(), 1U);
  EXPECT_EQ(logs["logs"][0]["name"], "decisions-1.json");
  for (const char* name : {"all", "decisions-1.json"}) {
    const TestReply reply =
        Request("POST", "/v1/evaluate?policies=logged,uniform&log=" + std::string(name));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.Json()["events"], 400);
  }
  for (const char* name : {"../secret.json", "secret.json", "decisions-2.json", "/etc/passwd"}) {
    EXPECT_EQ(Request("POST", "/v1/evaluate?log=" + std::string(name)).status, 404) << name;
  }
}

}  // namespace
}  // namespace codband::server
