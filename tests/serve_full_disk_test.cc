// The real server on a disk that is full for a while. The disk is a small tmpfs in a mount
// namespace of the test's own; the test runs itself again inside.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "codband/engine/engine_testing.h"
#include "tests/crash_client.h"
#include "tests/server_process.h"

namespace codband {
namespace {

constexpr const char* kInside = "SERVE_FULL_DISK_TEST_INSIDE";

int RunShell(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void Fill(const std::filesystem::path& disk) {
  const int fd = ::open((disk / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const std::string block(4096, 'x');
  while (::write(fd, block.data(), block.size()) > 0) continue;
  ::close(fd);
}

void StopOnAFullDisk(const std::filesystem::path& disk, const std::vector<std::string>& settings,
                     CrashClient& client) {
  ServerProcess server(disk / "data", settings);
  ASSERT_TRUE(server.listens());
  client.Settle(server);
  Fill(disk);
  const std::uint64_t refused = client.refused();
  client.Run(server, 100'000);
  EXPECT_GT(client.refused(), refused);
  EXPECT_EQ(server.Stop(SIGTERM), 5) << "it stops in trouble";
  ASSERT_TRUE(std::filesystem::remove(disk / "filler"));
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
      Fill(disk);
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
      ASSERT_TRUE(std::filesystem::remove(disk / "filler"));
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

TEST(ServerCrashTest, AFullDiskLosesNothing) {
  const engine::TempDirectory directory;
  if (std::getenv(kInside) != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    ASSERT_EQ(::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=24m"), 0)
        << std::strerror(errno);
    UseAFullDisk(directory.path());
    ::umount2(directory.path().c_str(), MNT_DETACH);
    return;
  }
  const char* flags = ::geteuid() == 0 ? "-m" : "-rm";
  if (RunShell(fmt::format("unshare {} mount -t tmpfs -o size=1m tmpfs {} 2>/dev/null", flags,
                           directory.path().string())) != 0) {
    GTEST_SKIP() << "not permitted to mount a tmpfs: neither as root nor by unshare -rm";
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int code = RunShell(
      fmt::format("{}=1 unshare {} '{}' --gtest_filter=ServerCrashTest.AFullDiskLosesNothing "
                  "--gtest_brief=1",
                  kInside, flags, self));
  EXPECT_EQ(code, 0) << "failed in its namespace, see above";
}

}  // namespace
}  // namespace codband
