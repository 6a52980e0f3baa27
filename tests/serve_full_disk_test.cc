// The real server on a disk that is full for a while.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/crash_client.h"
#include "tests/server_process.h"
#include "tests/small_disk.h"

namespace codband {
namespace {

void StopOnAFullDisk(const std::filesystem::path& disk, const std::vector<std::string>& settings,
                     CrashClient& client) {
  ServerProcess server(disk / "data", settings);
  ASSERT_TRUE(server.listens());
  client.Settle(server);
  SmallDisk::Fill(disk);
  const std::uint64_t refused = client.refused();
  client.Run(server, 100'000);
  EXPECT_GT(client.refused(), refused);
  EXPECT_EQ(server.Stop(SIGTERM), 5) << "it stops in trouble";
  SmallDisk::MakeRoom(disk);
}

void UseAFullDisk(const std::filesystem::path& disk) {
  const std::vector<std::string> settings = {"features.dimension=6",
                                             "durability.checkpoint_events=20",
                                             // Little is preallocated for the write-ahead log.
                                             "memory.write_buffer_mb=1"};
  CrashClient client(0, 4);
  {
    ServerProcess server(disk / "data", settings);
    ASSERT_TRUE(server.listens());
    const auto connection = server.Connect();
    ASSERT_NE(connection, nullptr);
    for (int i = 0; i < 6; ++i) {
      const auto reply =
          connection->Send({.method = "PUT",
                            .target = fmt::format("/v1/items/item{}", i),
                            .body = fmt::format(R"({{"features":[{},1,0,{},0,0]}})", i, i % 2)},
                           kPatience);
      ASSERT_TRUE(reply.ok() && reply.value().status < 300);
    }
    client.Run(server, 50);
    ASSERT_EQ(client.events().size(), 50U);
    client.set_patient(false);
    for (int time = 0; time < 3; ++time) {
      SmallDisk::Fill(disk);
      // Some may still fit into preallocated space.
      const std::uint64_t refused = client.refused();
      client.Run(server, 100'000);
      EXPECT_GT(client.refused(), refused);
      EXPECT_NE(client.refusal().find("pace"), std::string::npos) << client.refusal();
      // Reads are still answered.
      const auto live = connection->Send({.target = "/v1/health/live"}, kPatience);
      ASSERT_TRUE(live.ok());
      EXPECT_EQ(live.value().status, 200U);
      const auto user = connection->Send({.target = "/v1/users/c0-user0"}, kPatience);
      ASSERT_TRUE(user.ok());
      EXPECT_EQ(user.value().status, 200U);
      // With room again it recovers by itself.
      SmallDisk::MakeRoom(disk);
      client.set_patient(true);
      const std::size_t before = client.events().size();
      client.Run(server, 50);
      EXPECT_EQ(client.events().size(), before + 50);
      client.set_patient(false);
    }
    EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);
  }
  StopOnAFullDisk(disk, settings, client);
  client.set_patient(true);
  ServerProcess server(disk / "data", settings);
  ASSERT_TRUE(server.listens());
  client.Settle(server);
  EXPECT_EQ(server.Stop(SIGTERM), 0);
}

TEST(ServerCrashTest, AFullDiskLosesNothing) { SmallDisk::Run("24m", UseAFullDisk); }

}  // namespace
}  // namespace codband
