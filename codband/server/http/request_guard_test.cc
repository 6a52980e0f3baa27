// Requests that pages of other sites send through a browser.
#include "codband/server/http/request_guard.h"

#include <gtest/gtest.h>

#include <string>

#include "codband/server/http/authority.h"
#include "codband/server/keys/key_gate.h"
#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

const std::string kRankBody = R"({"userId":"u"})";

class RequestGuardTest : public ServerFixture {
 protected:
  TestReply Get(const std::string& host, const std::string& headers = "",
                const std::string& target = "/v1/health/live") {
    TestClient client = Connect();
    client.Send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
    return client.Receive();
  }
  TestReply Rank(const std::string& headers) {
    return Request("POST", "/v1/rank", kRankBody, headers);
  }
};

TEST(AuthorityTest, IsTakenApart) {
  EXPECT_EQ(ParseAuthority("example.org:8080")->host, "example.org");
  EXPECT_EQ(ParseAuthority("example.org:8080")->port, "8080");
  EXPECT_EQ(ParseAuthority("[::1]:80")->host, "[::1]");
  EXPECT_TRUE(IsAddressLiteral("127.0.0.1"));
  EXPECT_TRUE(IsAddressLiteral("[::1]"));
  for (const char* name : {"localhost", "127.0.0.1.example.org", "a.1", "1.2.3.x", "1.", "."}) {
    EXPECT_FALSE(IsAddressLiteral(name)) << name;
  }
  EXPECT_EQ(ParseOrigin("https://example.org:1")->authority.port, "1");
  for (const char* text : {"null", "", "example.org", "http://", "http://a/b", "://a"}) {
    EXPECT_FALSE(ParseOrigin(text)) << text;
  }
}

TEST_F(RequestGuardTest, ANameThatIsNotOursIsRefused) {
  Start({.allowed_hosts = {"rec.example.org", "*.intern"}});
  for (const char* host : {"localhost", "127.0.0.1:1", "[::1]", "192.0.2.7", "rec.example.org",
                           "REC.example.org:8080", "a.intern", "a.b.intern:80"}) {
    EXPECT_EQ(Get(host).status, 200) << host;
  }
  for (const char* host : {"attacker.example", "example.org", "x.rec.example.org", "intern",
                           "xintern", "localhost.attacker.example", "127.0.0.1.attacker.example"}) {
    const TestReply reply = Get(host);
    EXPECT_EQ(reply.status, 421) << host;
    EXPECT_EQ(reply.Error("code"), "HostNotAllowed");
    EXPECT_NE(reply.Error("message").find("http.allowed_hosts"), std::string::npos);
  }
  // An absolute target overrides the header.
  EXPECT_EQ(Get("localhost", "", "http://attacker.example/v1/health/live").status, 421);
  EXPECT_EQ(Get("attacker.example", "", "http://localhost/v1/health/live").status, 200);
  // HTTP/1.0 needs none.
  TestClient old = Connect();
  old.Send("GET /v1/health/live HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Receive().status, 200);
}

TEST_F(RequestGuardTest, AnyNameMayBeAllowed) {
  Start({.allowed_hosts = {"*"}});
  EXPECT_EQ(Get("whatever.example").status, 200);
}

TEST_F(RequestGuardTest, PagesOfOtherOriginsAreRefusedOnEveryRoute) {
  Start();
  for (const Route& route : Api::Routes()) {
    std::string path(route.pattern);
    if (path.find("{id}") != std::string::npos) path.replace(path.find("{id}"), 4, "1");
    for (const char* origin : {"http://attacker.example", "http://localhost:81", "http://127.0.0.1",
                               "null", "ftp://localhost", "file://"}) {
      const TestReply reply = Request(MethodName(route.method), path, kRankBody,
                                      "Origin: " + std::string(origin) + "\r\n");
      EXPECT_EQ(reply.status, 403) << path << " " << origin;
      EXPECT_EQ(reply.Error("code"), "OriginNotAllowed");
      EXPECT_FALSE(reply.Has("Access-Control-")) << path;
    }
  }
  EXPECT_EQ(engine_.calls(), 0U);
  EXPECT_EQ(Request("OPTIONS", "/v1/rank", "", "Origin: http://attacker.example\r\n").status, 403);
  // Our own page. TestClient sends "Host: localhost".
  for (const char* origin : {"http://localhost", "http://localhost:80", "https://localhost",
                             "https://localhost:443", "http://LOCALHOST"}) {
    EXPECT_EQ(Rank("Origin: " + std::string(origin) + "\r\n").status, 200) << origin;
  }
  EXPECT_EQ(Get("127.0.0.1:8080", "Origin: http://127.0.0.1:8080\r\n").status, 200);
  EXPECT_EQ(Get("127.0.0.1:8080", "Origin: http://127.0.0.1:8081\r\n").status, 403);
}

TEST_F(RequestGuardTest, WritesOfOtherSitesAreRefusedWithoutAnOriginToo) {
  Start();
  for (const char* site : {"cross-site", "same-site", "nonsense"}) {
    const std::string header = "Sec-Fetch-Site: " + std::string(site) + "\r\n";
    EXPECT_EQ(Request("POST", "/v1/events/e/activate", "", header).status, 403) << site;
    EXPECT_EQ(Request("DELETE", "/v1/users/ada", "", header).status, 403) << site;
    // A link to the dashboard.
    EXPECT_EQ(Request("GET", "/", "", header).status, 200) << site;
  }
  EXPECT_EQ(engine_.calls(), 0U);
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(Rank("Sec-Fetch-Site: " + std::string(site) + "\r\n").status, 200) << site;
  }
}

TEST_F(RequestGuardTest, WritesAreJson) {
  Start();
  for (const char* type :
       {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain",
        "text/plain; application/json", "application/jsonx", "", "application/x-ndjson"}) {
    const TestReply reply = Rank("Content-Type: " + std::string(type) + "\r\n");
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_EQ(reply.Error("field"), "Content-Type");
    EXPECT_EQ(reply.Error("message"), "is not supported, expected application/json");
    // A form without fields has a type, but no body.
    if (std::string_view(type) != "application/x-ndjson") {
      EXPECT_EQ(Request("POST", "/v1/events/e/activate", "",
                        "Content-Type: " + std::string(type) + "\r\n")
                    .status,
                415)
          << type;
    }
  }
  TestClient client = Connect();
  client.Send("POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n" +
              kRankBody);
  EXPECT_EQ(client.Receive().Error("message"), "is missing, expected application/json");
  client.Send(
      "POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 415);
  EXPECT_EQ(engine_.calls(), 0U);
  for (const char* type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8"}) {
    EXPECT_EQ(Rank("Content-Type: " + std::string(type) + "\r\n").status, 200) << type;
  }
  for (const char* type : {"application/json", "application/x-ndjson"}) {
    EXPECT_EQ(Request("POST", "/v1/items", "{\"id\":\"a\",\"features\":[1,2,3,4]}\n",
                      "Content-Type: " + std::string(type) + "\r\n")
                  .status,
              200);
  }
  EXPECT_EQ(Request("POST", "/v1/items", "{}\n", "Content-Type: text/plain\r\n").Error("message"),
            "is not supported, expected application/x-ndjson or application/json");
  // No body, no type.
  EXPECT_EQ(Request("POST", "/v1/events/e/activate").status, 204);
  EXPECT_EQ(Request("DELETE", "/v1/users/ada").status, 204);
}

TEST_F(RequestGuardTest, AllowedOriginsAreAnsweredAsCorsAsks) {
  const auto gate = KeyGate::Open({.admin_key = "secret"}).value();
  Start({.gatekeeper = gate.get(), .allowed_origins = {"https://shop.example.org"}});
  const std::string origin = "Origin: https://shop.example.org\r\n";
  // The browser asks first, without the key.
  const TestReply asked = Request("OPTIONS", "/v1/items/a", "",
                                  origin +
                                      "Access-Control-Request-Method: PUT\r\n"
                                      "Access-Control-Request-Headers: content-type\r\n");
  EXPECT_EQ(asked.status, 204);
  EXPECT_TRUE(asked.Has("Access-Control-Allow-Origin: https://shop.example.org\r\n"));
  EXPECT_TRUE(asked.Has("Access-Control-Allow-Methods: DELETE, GET, HEAD, PUT\r\n"));
  EXPECT_TRUE(asked.Has("X-API-Key"));
  EXPECT_TRUE(asked.Has("Vary: Origin\r\n"));
  EXPECT_EQ(Request("OPTIONS", "/v1/nothing", "", origin).status, 404);
  // Replies may be read, errors too.
  const TestReply ranked = Rank(origin + "Sec-Fetch-Site: cross-site\r\nX-API-Key: secret\r\n");
  EXPECT_EQ(ranked.status, 200);
  EXPECT_TRUE(ranked.Has("Access-Control-Allow-Origin: https://shop.example.org\r\n"));
  const TestReply refused = Rank(origin);
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.Has("Access-Control-Allow-Origin: https://shop.example.org\r\n"));
  EXPECT_FALSE(Rank("X-API-Key: secret\r\n").Has("Access-Control-"));
  for (const char* other : {"http://shop.example.org", "https://shop.example.org:444",
                            "https://x.shop.example.org", "https://shop.example.org.attacker"}) {
    const TestReply reply = Rank("X-API-Key: secret\r\nOrigin: " + std::string(other) + "\r\n");
    EXPECT_EQ(reply.status, 403) << other;
    EXPECT_FALSE(reply.Has("Access-Control-"));
  }
  EXPECT_EQ(engine_.calls(), 2U);
  server_.reset();  // before its gatekeeper
}

TEST(RequestGuardOptionsTest, AreChecked) {
  FakeEngine engine;
  for (const char* host : {"", "a:80", "http://a", "*a", "a b"}) {
    EXPECT_FALSE(StartServer(engine, {.port = 0, .allowed_hosts = {host}}).ok()) << host;
  }
  for (const char* origin : {"*", "null", "example.org", "https://a/", "ftp://a"}) {
    EXPECT_FALSE(StartServer(engine, {.port = 0, .allowed_origins = {origin}}).ok()) << origin;
  }
}

}  // namespace
}  // namespace codband::server
