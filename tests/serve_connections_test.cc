// The real server with few file descriptors and many connections.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "codband/engine/engine_testing.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/http/descriptors.h"
#include "codband/server/http/test_client.h"
#include "codband/server/http/tls_testing.h"
#include "tests/server_process.h"

namespace codband {
namespace {

unsigned Put(server::HttpClient& client, int item) {
  const auto reply =
      client.Send({.method = "PUT",
                   .target = fmt::format("/v1/items/item{}", item),
                   .body = fmt::format(R"({{"features":[{},1,0,{},0,0]}})", item, item % 2)},
                  kPatience);
  return reply.ok() ? reply.value().status : 0;
}

// A visit with its reward; whether both were acknowledged.
bool Visit(server::HttpClient& client, const std::string& event) {
  const auto ranked =
      client.Send({.method = "POST",
                   .target = "/v1/rank",
                   .body = fmt::format(R"({{"userId":"u","eventId":"{}"}})", event)},
                  kPatience);
  if (!ranked.ok() || ranked.value().status != 200) return false;
  const auto rewarded = client.Send(
      {.method = "POST", .target = "/v1/events/" + event + "/reward", .body = R"({"value":1})"},
      kPatience);
  return rewarded.ok() && rewarded.value().status == 200;
}

std::string Get(server::HttpClient& client, const std::string& target) {
  const auto reply = client.Send({.target = target}, kPatience);
  return reply.ok() ? fmt::format("{} {}", reply.value().status, reply.value().body) : "no reply";
}

double Metric(server::HttpClient& client, const std::string& name) {
  const std::string text = Get(client, "/metrics");
  const std::size_t at = text.find("\n" + name + " ");
  return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(ServeConnectionsTest, IdleConnectionsTakeNothingFromTheStoreOrFromNewClients) {
  server::RaiseDescriptorLimit();  // of this process, which holds the other ends
  const engine::TempDirectory directory;
  ServerProcess server(
      directory.path() / "data",
      {"features.dimension=6", "durability.checkpoint_events=3", "server.max_connections=5000"},
      "ulimit -n 1024");
  ASSERT_TRUE(server.listens());
  std::vector<server::TestClient> idle;
  for (int i = 0; i < 1100; ++i) {
    idle.emplace_back(server.port());
    ASSERT_TRUE(idle.back().connected()) << i;
  }
  const auto client = server.Connect();
  ASSERT_NE(client, nullptr);
  const double before = Metric(*client, "codband_checkpoints_total");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Put(*client, i), 204U);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Visit(*client, std::to_string(i))) << i;
  double checkpoints = before;
  for (int i = 0; i < 1000 && checkpoints < before + 3; ++i) {
    checkpoints = Metric(*client, "codband_checkpoints_total");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(checkpoints, before + 3);
  EXPECT_EQ(Get(*client, "/v1/health/ready"), R"(200 {"status":"ready"})");
  const auto backup = client->Send(
      {.method = "POST", .target = "/v1/backup", .body = R"({"name":"full-house"})"}, kPatience);
  ASSERT_TRUE(backup.ok());
  EXPECT_EQ(backup.value().status, 201U) << backup.value().body;
  EXPECT_EQ(Metric(*client, "codband_connections_limit"), 512);
  EXPECT_GE(Metric(*client, "codband_connections_displaced_total"), 1100 - 512);
  EXPECT_EQ(Metric(*client, "codband_connections_refused_total"), 0);
  EXPECT_EQ(server.Stop(SIGTERM), 0);
}

TEST(ServeConnectionsTest, TheSoftLimitOfOpenFilesIsRaised) {
  const engine::TempDirectory directory;
  ServerProcess server(directory.path() / "data", {"server.max_connections=700"},
                       "ulimit -Sn 256 && ulimit -Hn 4096");
  ASSERT_TRUE(server.listens());
  const auto client = server.Connect();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Metric(*client, "codband_connections_limit"), 700);
}

std::string Fingerprint(const std::filesystem::path& data) {
  const auto note = server::ReadServerNote(data);
  return note ? note->fingerprint : "";
}

std::unique_ptr<server::HttpClient> ConnectTls(const ServerProcess& server,
                                               const std::string& fingerprint) {
  auto client = server::HttpClient::Connect(
      {.host = "127.0.0.1", .port = server.port(), .tls = true, .fingerprint = fingerprint},
      kPatience);
  return client.ok() ? std::move(client).value() : nullptr;
}

TEST(ServeTlsTest, TheCertificateIsReadAgainAfterSighup) {
  const engine::TempDirectory directory;
  const std::filesystem::path data = directory.path() / "data";
  const server::TlsFiles files = server::WriteTestCertificate(directory.path(), "first");
  const server::TlsFiles renewed = server::WriteTestCertificate(directory.path(), "renewed");
  ServerProcess server(
      data, {"tls.certificate=" + files.certificate.string(), "tls.key=" + files.key.string()},
      "exec </dev/null");  // on a terminal SIGHUP stops the server
  ASSERT_TRUE(server.listens());
  const std::string first = Fingerprint(data);
  const auto old = ConnectTls(server, first);
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(Get(*old, "/v1/health/live"), R"(200 {"status":"live"})");
  EXPECT_EQ(Get(*server.Connect(), "/v1/health/live").substr(0, 3), "400") << "plain HTTP";
  std::filesystem::rename(renewed.certificate, files.certificate);
  std::filesystem::rename(renewed.key, files.key);
  server.Signal(SIGHUP);
  for (int i = 0; i < 3000 && Fingerprint(data) == first; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_NE(Fingerprint(data), first);
  EXPECT_EQ(ConnectTls(server, first), nullptr);
  const auto fresh = ConnectTls(server, Fingerprint(data));
  ASSERT_NE(fresh, nullptr);
  EXPECT_EQ(Get(*fresh, "/v1/health/live"), R"(200 {"status":"live"})");
  EXPECT_EQ(Get(*old, "/v1/health/live"), R"(200 {"status":"live"})");
  // The commands find the server by its note.
  const auto how = server::BackUpData(data, directory.path() / "copy");
  ASSERT_TRUE(how.ok()) << how.status().ToString();
  EXPECT_EQ(how.value(), "by the server at https://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.Stop(SIGTERM), 0);
}

}  // namespace
}  // namespace codband
