// Where a request ends (RFC 9112): bytes that two readers could take for different messages are
// refused and the connection is closed, so that nothing behind them is read as a request.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codband/server/server_fixture.h"

namespace codband::server {
namespace {

class MessageFramingTest : public ServerFixture {};

// What an attacker hides behind a body. It would be executed if the body ended early.
const std::string kHidden = "DELETE /v1/users/ada HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kRankLine = "POST /v1/rank HTTP/1.1\r\n";
const std::string kHostLine = "Host: localhost\r\n";
const std::string kTypeLine = "Content-Type: application/json\r\n";

struct BadFraming {
  std::string name;
  int status;
  std::string bytes;
};

std::vector<BadFraming> Smuggled() {
  const std::string post = kRankLine + kHostLine + kTypeLine;
  const std::string length = "Content-Length: " + std::to_string(kHidden.size()) + "\r\n";
  std::vector<BadFraming> all;
  // Codings of the transfer that are not ours.
  for (const char* value : {"xchunked", "gzip, chunked", "gzip", "identity", "chunkedx"}) {
    all.push_back({value, 501, post + "Transfer-Encoding: " + value + "\r\n\r\n"});
  }
  for (const char* value : {"chunked, chunked", "chunked, gzip", "chunked;q=1", "", ",chunked",
                            "\"chunked\"", "chunked,", "chun ked", "chunked\v"}) {
    all.push_back({value, 400, post + "Transfer-Encoding: " + value + "\r\n\r\n"});
  }
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  all.push_back({"two transfer encodings", 400, post + chunked + chunked + "\r\n0\r\n\r\n"});
  all.push_back(
      {"an unknown one first", 501, post + "Transfer-Encoding: x\r\n" + chunked + "\r\n0\r\n\r\n"});
  all.push_back({"both, encoding first", 400, post + chunked + length + "\r\n0\r\n\r\n"});
  all.push_back({"both, length first", 400, post + length + chunked + "\r\n0\r\n\r\n"});
  all.push_back({"an unknown coding and a length", 501,
                 post + "Transfer-Encoding: x\r\nContent-Length: 0\r\n\r\n"});
  all.push_back({"chunked in HTTP/1.0", 400,
                 "POST /v1/rank HTTP/1.0\r\n" + kTypeLine + chunked + "\r\n0\r\n\r\n"});
  // Lengths.
  for (const char* value : {"0, 0", "0,5", "+0", "-0", "0x0", "1e1", "", "0 0", "0;",
                            "18446744073709551616", "99999999999999999999999"}) {
    all.push_back({value, 400, post + "Content-Length: " + value + "\r\n\r\n"});
  }
  all.push_back({"equal lengths", 400, post + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"});
  all.push_back({"two lengths", 400, post + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n"});
  // Chunks.
  for (const char* chunk :
       {"x\r\n", "0x0\r\n\r\n", "-0\r\n\r\n", " 0\r\n\r\n", "0\n\n", "0\r\r\n",
        "fffffffffffffffff\r\n", "2\r\n{}x\r\n0\r\n\r\n", "2\r\n{}\n0\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n", "0;\n\r\n\r\n"}) {
    all.push_back({std::string("chunk ") + chunk, 400, post + chunked + "\r\n" + chunk});
  }
  return all;
}

std::vector<BadFraming> BadHeads() {
  const std::string get = "GET /v1/health/live HTTP/1.1\r\n";
  std::vector<BadFraming> all;
  // Hosts.
  all.push_back({"no host", 400, get + "\r\n"});
  all.push_back({"two hosts", 400, get + kHostLine + kHostLine + "\r\n"});
  all.push_back({"two hosts in HTTP/1.0", 400,
                 "GET /v1/health/live HTTP/1.0\r\n" + kHostLine + kHostLine + "\r\n"});
  for (const char* host :
       {"", "a, b", "a b", "localhost:x", "localhost:80:80", "localhost:99999", "user@localhost",
        "localhost/", "[::1", "[]", "::1", "[::1]x", "a\tb", "http://localhost", "localhost#"}) {
    all.push_back({std::string("host ") + host, 400, get + "Host: " + host + "\r\n\r\n"});
  }
  all.push_back({"a malformed host in the target", 400,
                 "GET http://user@localhost/v1/health/live HTTP/1.1\r\n" + kHostLine + "\r\n"});
  // Lines.
  const std::string more = get + kHostLine;
  for (const char* line : {"A: b\r\n c\r\n",
                           "A:\r\n b\r\n",
                           "A:\r\n \r\n",
                           "A: b\r\n\t\r\n",
                           "A : b\r\n",
                           "A\t: b\r\n",
                           " A: b\r\n",
                           ": b\r\n",
                           "A\r\n",
                           "A: b\rc\r\n",
                           "A: b\nB: c\r\n",
                           "A: b\n",
                           "A: b\r\r\n",
                           "A(: b\r\n",
                           "\"A\": b\r\n",
                           "A: b\x01\r\n",
                           "A: b\x7f\r\n",
                           "Transfer-Encoding : chunked\r\n",
                           "Transfer-Encoding\x0b: chunked\r\n",
                           "Content-Length\r\n : 5\r\n"}) {
    all.push_back({line, 400, more + line + "\r\n"});
  }
  all.push_back({"a zero byte", 400, more + std::string("A: b\0c\r\n\r\n", 10)});
  all.push_back({"bare line feeds", 400, "GET / HTTP/1.1\nHost: localhost\n\n"});
  all.push_back({"two spaces", 400, "GET  / HTTP/1.1\r\n" + kHostLine + "\r\n"});
  all.push_back({"a space in the target", 400, "GET /a b HTTP/1.1\r\n" + kHostLine + "\r\n"});
  all.push_back({"a line before", 400, " GET / HTTP/1.1\r\n" + kHostLine + "\r\n"});
  for (const char* name : {"X-API-Key", "Origin", "Content-Type", "Content-Encoding"}) {
    const std::string line = std::string(name) + ": a\r\n";
    all.push_back({std::string("two of ") + name, 400, more + line + line + "\r\n"});
  }
  return all;
}

TEST_F(MessageFramingTest, WhatEndsInTwoPlacesIsRefusedAndTheConnectionClosed) {
  Start();
  std::vector<BadFraming> all = Smuggled();
  for (BadFraming& bad : BadHeads()) all.push_back(std::move(bad));
  for (const BadFraming& bad : all) {
    TestClient client = Connect();
    ASSERT_TRUE(client.Send(bad.bytes + kHidden));
    const TestReply reply = client.Receive();
    EXPECT_EQ(reply.status, bad.status) << bad.name << "\n" << reply.body;
    EXPECT_TRUE(reply.Has("Connection: close\r\n")) << bad.name;
    EXPECT_NE(reply.Error("message"), "") << bad.name;
    client.ShutdownSend();
    EXPECT_TRUE(client.Ended()) << bad.name << ": what came behind it was read";
  }
  EXPECT_EQ(engine_.calls(), 0U) << "a hidden request was executed";
}

TEST_F(MessageFramingTest, TheSameBytesOneAtATimeAreRefusedAsWell) {
  Start();
  const std::string post = kRankLine + kHostLine + kTypeLine;
  for (const std::string& bytes :
       {post + "Transfer-Encoding: xchunked\r\n\r\n", post + "A: b\r\n c\r\n\r\n",
        post + "A:\r\n c\r\n\r\n", post + "Content-Length: 0, 0\r\n\r\n"}) {
    TestClient client = Connect();
    for (const char byte : bytes + kHidden) {
      if (!client.Send(std::string_view(&byte, 1))) break;
    }
    const TestReply reply = client.Receive();
    EXPECT_TRUE(reply.status == 400 || reply.status == 501) << bytes << reply.status;
    client.ShutdownSend();
    EXPECT_TRUE(client.Ended()) << bytes;
  }
  EXPECT_EQ(engine_.calls(), 0U);
}

TEST_F(MessageFramingTest, WhatIsWellFormedIsRead) {
  Start();
  TestClient client = Connect();
  const std::string body = R"({"userId":"u"})";
  const std::string chunks = "7\r\n" + body.substr(0, 7) + "\r\n7;x=\"y\"\r\n" + body.substr(7) +
                             "\r\n000\r\nTrailer: t\r\n\r\n";
  const std::string post = kRankLine + kHostLine + kTypeLine;
  for (const char* chunked : {"Transfer-Encoding: chunked", "transfer-encoding:Chunked",
                              "Transfer-Encoding: \t chunked \t"}) {
    client.Send(post + chunked + "\r\n\r\n" + chunks);
    EXPECT_EQ(client.Receive().status, 200) << chunked;
  }
  // Blanks around values and none at all.
  client.Send(kRankLine + "host:localhost\r\nContent-Type:   application/json  \r\nEmpty:\r\n" +
              "Content-Length:\t14 \r\n\r\n" + body);
  EXPECT_EQ(client.Receive().status, 200);
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "[::1]",
                           "[::1]:8080", "10.1.2.3", "localhost:"}) {
    client.Send("GET /v1/health/live HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_EQ(client.Receive().status, 200) << host;
  }
  EXPECT_EQ(engine_.calls(), 4U);
}

TEST_F(MessageFramingTest, TheFaultIsNamed) {
  Start();
  const auto error = [&](const std::string& headers) {
    TestClient client = Connect();
    client.Send(kRankLine + headers + "\r\n");
    const TestReply reply = client.Receive();
    return reply.Error("field") + " " + reply.Error("message");
  };
  EXPECT_EQ(error(""), "Host is missing");
  EXPECT_EQ(error(kHostLine + kHostLine), "Host is given twice");
  EXPECT_EQ(error(kHostLine + "Transfer-Encoding: xchunked\r\n"),
            "Transfer-Encoding is not supported, expected chunked");
  EXPECT_EQ(error(kHostLine + "Content-Length: 1, 1\r\n"),
            "Content-Length is malformed, expected one whole number");
  EXPECT_EQ(error(kHostLine + "A: b\r\n c\r\n"),
            "headers have a field that is continued on a second line");
}

}  // namespace
}  // namespace codband::server
