#include "codband/server/api/api.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codband/server/api/openapi.h"
#include "codband/server/keys/key_gate.h"
#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

using nlohmann::json;

class ApiTest : public ServerFixture {
 protected:
  void SetUp() override { Start(); }
};

TEST_F(ApiTest, RanksWithTheRequestOfTheClient) {
  const TestReply reply =
      Request("POST", "/v1/rank", R"({"userId":"ada","eventId":"e1","actions":["a","b"]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.Has("Content-Type: application/json\r\n"));
  EXPECT_TRUE(reply.Has("Date: "));
  const json parsed = reply.Json();
  EXPECT_EQ(parsed["eventId"], "e1");
  EXPECT_EQ(parsed["rewardActionId"], "a");
  EXPECT_EQ(parsed["ranking"].size(), 2u);
  EXPECT_EQ(parsed["ranking"][1]["probability"], 0.5);
  EXPECT_EQ(parsed["modelId"], 3);
  EXPECT_FALSE(parsed.contains("explanation"));
  EXPECT_EQ(engine_.last_request().user, "ada");
  EXPECT_EQ(engine_.last_request().candidates.size(), 2u);
}

TEST_F(ApiTest, AUserWithoutAModelHasANullModelId) {
  EXPECT_TRUE(Request("POST", "/v1/rank", R"({"userId":"new"})").Json()["modelId"].is_null());
}

TEST_F(ApiTest, ExplainsWhenAsked) {
  const std::string body = R"({"userId":"u","actions":["a"]})";
  EXPECT_EQ(Request("POST", "/v1/rank?explain=true", body).Json()["explanation"]["groupUsers"], 4);
  EXPECT_FALSE(Request("POST", "/v1/rank?explain=false", body).Json().contains("explanation"));
  EXPECT_EQ(Request("POST", "/v1/rank?explain=maybe", body).Error("field"), "explain");
  EXPECT_EQ(Request("POST", "/v1/rank?why=1", body).status, 400);
}

TEST_F(ApiTest, CallsThatCompleteAtOnceAreAnswered) {
  EXPECT_EQ(Request("POST", "/v1/rank", R"({"userId":"now","actions":["a"]})").status, 200);
}

TEST_F(ApiTest, BadRequestsNeverReachTheEngine) {
  for (const char* body :
       {"{", R"({"userId":""})", R"({"userId":"u","actions":[{"id":"a","features":[1]}]})",
        R"({"userId":"u","actions":[{"id":"a","features":[1,2,3,1e400]}]})"}) {
    const TestReply reply = Request("POST", "/v1/rank", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(reply.Error("code"), "BadArgument");
    EXPECT_NE(reply.Error("field"), "");
  }
  EXPECT_EQ(Request("POST", "/v1/rank").Error("message"), "is empty, expected a JSON object");
  EXPECT_EQ(Request("POST", "/v1/events/e/reward", R"({"value":NaN})").status, 400);
  EXPECT_EQ(Request("PUT", "/v1/items/a", "{}").status, 400);
  EXPECT_EQ(Request("POST", "/v1/backup", "{}").status, 400);
  EXPECT_EQ(engine_.calls(), 0u);
}

TEST_F(ApiTest, EngineErrorsBecomeHttpStatuses) {
  const auto rank = [&](const std::string& user) {
    return Request("POST", "/v1/rank", R"({"userId":")" + user + "\"}");
  };
  const TestReply busy = rank("busy");
  EXPECT_EQ(busy.status, 503);
  EXPECT_TRUE(busy.Has("Retry-After: 1\r\n"));
  EXPECT_EQ(rank("disk").status, 507);
  EXPECT_EQ(rank("broken").status, 503);
  EXPECT_EQ(rank("corrupt").status, 500);
  const TestReply bad = rank("bad");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.Error("field"), "actions[1]");
  const TestReply thrown = rank("throw");
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(thrown.Error("message"), "the engine is broken");
  const TestReply memory = rank("memory");
  EXPECT_EQ(memory.status, 503);
  EXPECT_EQ(memory.Error("message"), "out of memory");
  EXPECT_TRUE(memory.Has("Retry-After: 1\r\n"));
  EXPECT_EQ(rank("well").status, 200);
}

TEST_F(ApiTest, RewardsHaveFourOutcomes) {
  const std::string body = R"({"value":0.5})";
  const TestReply first = Request("POST", "/v1/events/e%2F1/reward", body);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, R"({"eventId":"e/1","status":"accepted","sequence":1})");
  const TestReply second = Request("POST", "/v1/events/e%2F1/reward", body);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.Json()["status"], "duplicate");
  EXPECT_EQ(Request("POST", "/v1/events/late/reward", body).status, 410);
  EXPECT_EQ(Request("POST", "/v1/events/late/reward", body).Error("code"), "Late");
  EXPECT_EQ(Request("POST", "/v1/events/unknown/reward", body).status, 404);
}

TEST_F(ApiTest, Activates) {
  const TestReply reply = Request("POST", "/v1/events/e/activate");
  EXPECT_EQ(reply.status, 204);
  EXPECT_FALSE(reply.Has("Content-Length"));
  EXPECT_EQ(Request("POST", "/v1/events/unknown/activate").status, 404);
}

TEST_F(ApiTest, AnItemTellsWhatWasLearnedOfIt) {
  EXPECT_EQ(Request("PUT", "/v1/items/hit", R"({"features":[1,2,3,4]})").status, 204);
  EXPECT_EQ(Request("GET", "/v1/items/hit").Json()["learned"],
            nlohmann::json::parse(R"({"shown":3,"reward":2,"effect":0.25,"width":0.125,
                "groups":[{"modelId":1,"users":2,"effect":0.5,"width":0.25}]})"));
}

TEST_F(ApiTest, ItemsArePutReadAndDeleted) {
  EXPECT_EQ(Request("GET", "/v1/items/a%20b").status, 404);
  EXPECT_EQ(Request("PUT", "/v1/items/a%20b", R"({"features":[1,2,3,4],"tags":["t"]})").status,
            204);
  EXPECT_EQ(Request("GET", "/v1/items/a%20b").body,
            R"({"id":"a b","features":[1,2,3,4],"tags":["t"]})");
  EXPECT_EQ(Request("DELETE", "/v1/items/a%20b").status, 204);
  EXPECT_EQ(Request("DELETE", "/v1/items/a%20b").status, 404);
}

TEST_F(ApiTest, ImportsLines) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) {
    lines += R"({"id":"item-)" + std::to_string(i) + R"(","features":[1,2,3,4]})" + "\n";
  }
  const TestReply reply = Request("POST", "/v1/items", lines);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.Json()["accepted"], 2500);
  EXPECT_EQ(reply.Json()["status"], "ok");
  EXPECT_TRUE(reply.Json()["tookMillis"].is_number_unsigned());
  EXPECT_EQ(engine_.items(), 2500u);
}

TEST_F(ApiTest, ImportsChunkedLines) {
  TestClient client = Connect();
  client.Send(
      "POST /v1/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  client.Send("10\r\n{\"id\":\"a\",\"featu\r\n");
  client.Send("10\r\nres\":[1,2,3,4]}\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.Receive().body.substr(0, 14), R"({"accepted":1,)");
  EXPECT_EQ(client.Request("GET", "/v1/items/a").status, 200);
}

TEST_F(ApiTest, AnImportIsAllOrNothing) {
  const TestReply reply =
      Request("POST", "/v1/items", "{\"id\":\"a\",\"features\":[1,2,3,4]}\n\n{\"id\":\"b\"}\n");
  EXPECT_EQ(reply.status, 400);
  const json error = reply.Json()["error"];
  EXPECT_EQ(error["line"], 3);
  EXPECT_EQ(error["field"], "features");
  EXPECT_EQ(error["imported"], 0);
  EXPECT_EQ(engine_.items(), 0u);
  EXPECT_EQ(Request("POST", "/v1/items", "\n\n").Error("message"),
            "is empty, expected one JSON object per line");
  EXPECT_EQ(Request("POST", "/v1/items").status, 400);
  EXPECT_EQ(Request("POST", "/v1/items", "[{}]").Error("message"),
            "is an array, expected an object");
}

TEST_F(ApiTest, AnExceptionDuringAnImportIsAnInternalError) {
  TestClient client = Connect();
  const TestReply reply =
      client.Request("POST", "/v1/items", "{\"id\":\"throw\",\"features\":[1,2,3,4]}\n");
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.Error("code"), "Internal");
  EXPECT_EQ(reply.Error("message"), "the engine is broken");
  EXPECT_EQ(client.Request("GET", "/v1/health/live").status, 200) << "the connection is kept";
}

TEST_F(ApiTest, Users) {
  const json user = Request("GET", "/v1/users/ada").Json();
  EXPECT_EQ(user["userId"], "ada");
  EXPECT_EQ(user["since"], "2019-07-07T12:00:00.123Z");
  EXPECT_EQ(Request("GET", "/v1/users/nobody").status, 404);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada").status, 204);
  EXPECT_EQ(Request("DELETE", "/v1/users/nobody").status, 404);
}

TEST_F(ApiTest, Models) {
  const json models = Request("GET", "/v1/models?top=1").Json()["models"];
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0]["topItems"].size(), 1u);
  EXPECT_FALSE(models[0].contains("parameter"));
  EXPECT_EQ(Request("GET", "/v1/models/1").Json()["parameter"].size(), 4u);
  EXPECT_EQ(Request("GET", "/v1/models/9").status, 404);
  EXPECT_EQ(Request("GET", "/v1/models/x").status, 400);
  EXPECT_EQ(Request("GET", "/v1/models?top=0").Error("field"), "top");
  EXPECT_EQ(Request("GET", "/v1/models?top=1001").status, 400);
}

TEST_F(ApiTest, Changes) {
  EXPECT_EQ(Request("GET", "/v1/changes").Json()["changes"].size(), 2u);
  EXPECT_EQ(Request("GET", "/v1/changes?limit=1").Json()["changes"].size(), 1u);
  EXPECT_EQ(Request("GET", "/v1/changes?limit=-1").status, 400);
}

TEST_F(ApiTest, Backups) {
  const TestReply reply = Request("POST", "/v1/backup", R"({"name":"monday"})");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, R"({"name":"monday"})");
  EXPECT_TRUE(std::filesystem::is_directory(backup_root() / "monday"));
  const TestReply again = Request("POST", "/v1/backup", R"({"name":"monday"})");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.Error("code"), "Conflict");
  EXPECT_EQ(again.Error("field"), "name");
  EXPECT_EQ(again.body.find(backup_root().string()), std::string::npos) << again.body;
}

// A client chooses a name, never a place: the server's user may write to many.
TEST_F(ApiTest, BackupsCannotLeaveTheirDirectory) {
  const std::filesystem::path outside = backup_root().parent_path() / "outside";
  for (const std::string& name :
       {std::string("/tmp/evil"), outside.string(), std::string("../outside"), std::string(".."),
        std::string("."), std::string(".hidden"), std::string("a/b"), std::string("a\\\\b"),
        std::string("a b"), std::string("a\\u0000b"), std::string("caf\xc3\xa9"),
        std::string("x.partial"), std::string(101, 'a'), std::string()}) {
    const TestReply reply = Request("POST", "/v1/backup", "{\"name\":\"" + name + "\"}");
    EXPECT_EQ(reply.status, 400) << name << reply.body;
    EXPECT_EQ(reply.Error("field"), "name") << name;
  }
  EXPECT_EQ(Request("POST", "/v1/backup", "{\"directory\":\"" + outside.string() + "\"}").status,
            400);
  EXPECT_EQ(engine_.calls(), 0U);
  EXPECT_EQ(Request("POST", "/v1/backup", "{\"name\":\"" + std::string(100, 'a') + "\"}").status,
            201);
}

TEST_F(ApiTest, FaultsOfTheServerAreToldWithoutItsPaths) {
  const TestReply broken = Request("POST", "/v1/backup", R"({"name":"broken"})");
  EXPECT_EQ(broken.status, 503);
  EXPECT_EQ(broken.Error("message"), "cannot write to <path>: Input/output error");
  engine_.set_last_error("cannot write to /var/lib/codband/rocksdb: IO error");
  EXPECT_EQ(Request("GET", "/v1/health/ready").Error("message"),
            "cannot write to <path>: IO error");
}

TEST_F(ApiTest, LinksInTheBackupDirectoryAreNotFollowed) {
  const std::filesystem::path outside = backup_root().parent_path() / "outside";
  std::filesystem::create_directories(backup_root());
  std::filesystem::create_directories(outside);
  std::filesystem::create_directory_symlink(outside / "dangling", backup_root() / "link");
  std::filesystem::create_directory_symlink(outside, backup_root() / "other.partial");
  EXPECT_EQ(Request("POST", "/v1/backup", R"({"name":"link"})").status, 409);
  EXPECT_EQ(Request("POST", "/v1/backup", R"({"name":"other"})").status, 201);
  EXPECT_TRUE(std::filesystem::is_empty(outside));
}

TEST_F(ApiTest, ReadinessIsThatOfTheStore) {
  EXPECT_EQ(Request("GET", "/v1/health/live").body, R"({"status":"live"})");
  EXPECT_EQ(Request("GET", "/v1/health/ready").status, 200);
  engine_.set_last_error("disk on fire");
  const TestReply reply = Request("GET", "/v1/health/ready");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.Error("message"), "disk on fire");
  EXPECT_EQ(Request("GET", "/v1/health/live").status, 200);
}

TEST_F(ApiTest, MetricsCountRequests) {
  Request("GET", "/v1/models");
  Request("GET", "/v1/nothing");
  const TestReply reply = Request("GET", "/metrics");
  EXPECT_TRUE(reply.Has("Content-Type: text/plain; version=0.0.4"));
  EXPECT_NE(reply.body.find(
                R"(codband_http_requests_total{route="/v1/models",method="GET",status="2xx"} 1)"),
            std::string::npos);
  EXPECT_NE(reply.body.find(
                R"(codband_http_requests_total{route="other",method="other",status="4xx"} 1)"),
            std::string::npos);
  // This one at least; those of the requests before may still be closing.
  const std::string_view name = "\ncodband_connections ";
  const std::size_t at = reply.body.find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stoi(reply.body.substr(at + name.size())), 1);
}

TEST_F(ApiTest, DashboardAndOpenApi) {
  const TestReply page = Request("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.Has("text/html"));
  EXPECT_TRUE(page.Has("Content-Security-Policy: default-src 'none'; script-src 'self'"));
  EXPECT_EQ(Request("GET", "/openapi.json").body, kOpenApiJson);
}

TEST_F(ApiTest, HeadHasTheLengthWithoutTheBody) {
  TestClient client = Connect();
  const TestReply head = client.Request("HEAD", "/v1/models");
  EXPECT_EQ(head.status, 200);
  const TestReply get = client.Request("GET", "/v1/models");
  EXPECT_TRUE(head.Has("Content-Length: " + std::to_string(get.body.size()) + "\r\n"));
  for (const Route& route : Api::Routes()) {
    if (route.method != Method::kGet) continue;
    std::string path(route.pattern);
    if (path.find("{id}") != std::string::npos) path.replace(path.find("{id}"), 4, "1");
    EXPECT_NE(client.Request("HEAD", path).status, 405) << path;
    EXPECT_EQ(client.Request("GET", "/v1/health/live").body, R"({"status":"live"})") << path;
  }
}

TEST_F(ApiTest, WrongMethodsAndPathsGetSuggestions) {
  const TestReply method = Request("GET", "/v1/rank");
  EXPECT_EQ(method.status, 405);
  EXPECT_TRUE(method.Has("Allow: POST\r\n"));
  EXPECT_EQ(Request("PATCH", "/v1/items/a").status, 405);
  EXPECT_EQ(Request("BREW", "/v1/items/a").status, 405);
  const TestReply path = Request("POST", "/v1/ranks", "{}");
  EXPECT_EQ(path.status, 404);
  EXPECT_NE(path.Error("message").find("/v1/rank"), std::string::npos);
  EXPECT_EQ(Request("GET", "/v1/items/%zz").Error("field"), "id");
  EXPECT_EQ(Request("GET", "/v1/users/%ff").status, 400);
}

// A server with a key of each role, and with one of the settings.
class ApiKeyTest : public ServerFixture {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    for (const Access role : kRoles) keys_[role] = AddKey(file(), AccessText(role), role).value();
    gate_ = KeyGate::Open({.file = file(),
                           .admin_key = kAdminKey,
                           .max_failures = 3,
                           .now = [this] { return now_; }})
                .value();
    ServerOptions options;
    options.gatekeeper = gate_.get();
    Start(options);
  }
  ~ApiKeyTest() override { server_.reset(); }  // before its gatekeeper

  std::filesystem::path file() const { return directory_ / "keys"; }
  static std::string PathOf(const Route& route) {
    std::string path(route.pattern);
    if (path.find("{id}") != std::string::npos) path.replace(path.find("{id}"), 4, "1");
    return path;
  }
  TestReply Ask(const Route& route, const std::string& headers) {
    return Request(MethodName(route.method), PathOf(route), "{}", headers);
  }

  static constexpr const char* kAdminKey = "a-key-of-the-settings";
  std::map<Access, std::string> keys_;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  std::unique_ptr<KeyGate> gate_;
};

TEST_F(ApiKeyTest, EveryRouteIsForItsRolesAndNoOthers) {
  for (const Route& route : Api::Routes()) {
    const bool open = route.access == Access::kOpen;
    const TestReply without = Ask(route, "");
    EXPECT_EQ(without.status == 401, !open) << route.pattern;
    EXPECT_EQ(without.Has("WWW-Authenticate: Bearer"), !open) << route.pattern;
    EXPECT_EQ(Ask(route, "X-API-Key: wrong\r\n").status == 401, !open) << route.pattern;
    for (const auto& [role, key] : keys_) {
      const int status = Ask(route, "X-API-Key: " + key + "\r\n").status;
      EXPECT_NE(status, 401) << route.pattern;
      EXPECT_EQ(status == 403, !Allows(role, route.access))
          << route.operation << " for " << AccessText(role);
    }
  }
  EXPECT_EQ(Request("GET", "/nowhere").status, 401);
  EXPECT_EQ(Request("GET", "/nowhere", "", "X-API-Key: " + keys_[Access::kRank] + "\r\n").status,
            404);
}

TEST_F(ApiKeyTest, RolesAreAsDocumented) {
  const auto status = [&](Access role, const char* method, const char* path) {
    return Request(method, path, "{}", "X-API-Key: " + keys_[role] + "\r\n").status;
  };
  for (const Access role : {Access::kRank, Access::kItems, Access::kRead}) {
    EXPECT_EQ(status(role, "POST", "/v1/backup"), 403);
    EXPECT_EQ(status(role, "DELETE", "/v1/users/ada"), 403);
    EXPECT_EQ(status(role, "GET", "/openapi.json"), 200);
  }
  EXPECT_EQ(status(Access::kRank, "GET", "/v1/users/ada"), 403);
  EXPECT_EQ(status(Access::kRank, "PUT", "/v1/items/a"), 403);
  EXPECT_EQ(status(Access::kRead, "POST", "/v1/rank"), 403);
  EXPECT_EQ(status(Access::kItems, "GET", "/v1/items/a"), 404);
  EXPECT_EQ(status(Access::kRead, "GET", "/v1/users/ada"), 200);
  EXPECT_EQ(status(Access::kAdmin, "DELETE", "/v1/users/ada"), 204);
  EXPECT_EQ(engine_.calls(), 1U);
}

TEST_F(ApiKeyTest, TheKeyComesInOneOfThreeHeaders) {
  const std::string key = keys_[Access::kRead];
  for (const std::string& header :
       {"X-API-Key: " + key, "x-api-key:" + key, "Authorization: Bearer " + key,
        "authorization: bearer  " + key, "Ocp-Apim-Subscription-Key: " + key,
        "X-API-Key: " + key + "\r\nAuthorization: Bearer " + key,
        "Authorization: Basic dTpw\r\nX-API-Key: " + key, std::string("X-API-Key: ") + kAdminKey}) {
    EXPECT_EQ(Request("GET", "/v1/models", "", header + "\r\n").status, 200) << header;
  }
  EXPECT_EQ(Request("GET", "/v1/models", "", "Authorization: Basic dTpw\r\n").status, 401);
  EXPECT_EQ(Request("GET", "/v1/models", "", "Authorization: " + key + "\r\n").status, 401);
}

// Which of two keys counts must not depend on who reads the request.
TEST_F(ApiKeyTest, TwoKeysAreRefused) {
  const std::string key = keys_[Access::kAdmin];
  for (const std::string& headers :
       {"X-API-Key: " + key + "\r\nX-API-Key: " + key, "X-API-Key: x\r\nX-API-Key: " + key,
        "X-API-Key: x\r\nAuthorization: Bearer " + key,
        "Authorization: Bearer " + key + "\r\nAuthorization: Bearer " + key,
        "Ocp-Apim-Subscription-Key: " + key + "\r\nX-API-Key: " + keys_[Access::kRank]}) {
    EXPECT_EQ(Request("GET", "/v1/models", "", headers + "\r\n").status, 400) << headers;
  }
}

TEST_F(ApiKeyTest, WrongKeysHaveToWaitAndConnectionsWithARightOneGoOn) {
  const std::string right = "X-API-Key: " + keys_[Access::kRead] + "\r\n";
  TestClient admitted = Connect();
  EXPECT_EQ(admitted.Request("GET", "/v1/models", "", right).status, 200);
  for (int i = 0; i < 3; ++i) {
    const std::string guess = "X-API-Key: guess" + std::to_string(i) + "\r\n";
    EXPECT_EQ(Request("GET", "/v1/models", "", guess).status, 401);
  }
  const TestReply refused = Request("GET", "/v1/models", "", "X-API-Key: guess\r\n");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.Error("code"), "TooManyFailures");
  EXPECT_TRUE(refused.Has("Retry-After: 1\r\n"));
  EXPECT_EQ(Request("GET", "/v1/models", "", right).status, 429) << "the same address";
  EXPECT_EQ(admitted.Request("GET", "/v1/models", "", right).status, 200);
  EXPECT_EQ(Request("GET", "/v1/health/live").status, 200);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(Request("GET", "/v1/models", "", right).status, 200);
}

TEST_F(ApiKeyTest, ARemovedKeyEndsAlsoOnAnOpenConnection) {
  const std::string right = "X-API-Key: " + keys_[Access::kRead] + "\r\n";
  TestClient client = Connect();
  EXPECT_EQ(client.Request("GET", "/v1/models", "", right).status, 200);
  EXPECT_EQ(client.Request("POST", "/v1/rank", "{}", right).status, 403);
  EXPECT_EQ(client.Request("GET", "/v1/models", "", right).status, 200);
  EXPECT_EQ(client.Request("GET", "/v1/models").status, 401) << "the refusal keeps the connection";
  ASSERT_TRUE(RemoveKey(file(), "read").ok());
  ASSERT_EQ(gate_->Reload(KeyGate::When::kChanged).value(), 3U);
  EXPECT_EQ(client.Request("GET", "/v1/models", "", right).status, 401);
}

TEST(ServerStartTest, RefusesWhatItCannotDo) {
  FakeEngine engine;
  const auto code = [&](const ServerOptions& options) {
    return StartServer(engine, options).status().code();
  };
  EXPECT_EQ(code({.host = "nowhere", .port = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.host = "192.0.2.1", .port = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.port = 0, .threads = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.port = 0, .request_timeout_ms = 0}), StatusCode::kInvalidArgument);
  const auto first = StartServer(engine, {.port = 0});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(code({.port = first.value()->port()}), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace codband::server
