// The real server under eight clients, killed 200 times, with small checkpoints, few users in
// memory, and a disk that is full in between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/random.h"
#include "tests/crash_client.h"
#include "tests/crash_log.h"
#include "tests/server_process.h"
#include "tests/small_disk.h"
#include "tests/wal_watch.h"

namespace codband {
namespace {

constexpr int kKills = 200;
constexpr int kClients = 8;
constexpr std::size_t kUsersOfEach = 3;
const std::vector<std::string> kSettings = {"features.dimension=6", "memory.users=4",
                                            "durability.checkpoint_events=9",
                                            "memory.write_buffer_mb=1"};

// Lets the clients work, with the disk full for a while in one of three rounds, and kills the
// server; sometimes while the disk is full.
void RunAndKill(const std::filesystem::path& disk, std::deque<CrashClient>& clients, bool first,
                RandomStream& random, Log& log) {
  WalWatch watch(disk / "data", disk / "links");
  ServerProcess server(disk / "data", kSettings);
  ASSERT_TRUE(server.listens());
  if (first) PutItems(server);
  std::vector<std::thread> threads;
  for (CrashClient& client : clients) threads.emplace_back([&] { client.Run(server); });
  const auto work = [&](std::uint64_t events) {
    const std::uint64_t enough = CountEvents(clients) + events;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (CountEvents(clients) < enough && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  };
  work(3 + random.Below(40));
  if (random.Below(3) == 0) {
    SmallDisk::Fill(disk);
    std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(30)));
    if (random.Below(3) != 0) {
      SmallDisk::MakeRoom(disk);
      work(1 + random.Below(20));
    }
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random.Below(3000)));
  EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);
  for (std::thread& thread : threads) thread.join();
  SmallDisk::MakeRoom(disk);
  watch.Collect(log);
  ReadLog(disk / "data", log);  // compares what is left of it
}

void KillOften(const std::filesystem::path& disk) {
  std::deque<CrashClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(i, static_cast<int>(kUsersOfEach)).set_forget_every(37);
  }
  Log log;
  RandomStream random({.seed = 5, .event = 0}, 1);
  for (int kill = 0; kill < kKills && !testing::Test::HasFailure(); ++kill) {
    RunAndKill(disk, clients, kill == 0, random, log);
  }
  {
    WalWatch watch(disk / "data", disk / "links");
    ServerProcess server(disk / "data", kSettings);
    ASSERT_TRUE(server.listens());
    for (CrashClient& client : clients) client.Settle(server);
    EXPECT_EQ(server.Stop(SIGTERM), 0);
    watch.Collect(log);
  }
  ExpectLogHolds(log, clients);
  std::uint64_t number = 0, refused = 0, forgets = 0;
  for (const auto& [key, entry] : log) ASSERT_EQ(key, engine::NumberKey(++number));
  const bool equal = engine::ReadStoredState(disk / "data") == LearnUndisturbed(log, log.size());
  EXPECT_TRUE(equal);
  for (const CrashClient& client : clients) {
    refused += client.refused();
    forgets += client.forgets();
  }
  EXPECT_GT(refused, 0U) << "the disk was never full";
  fmt::print(
      "{} kills, {} clients, {} requests refused; acknowledged: {} rewards, {} forgets; {} log "
      "entries, state {} the twin's\n",
      kKills, kClients, refused, CountEvents(clients), forgets, log.size(),
      equal ? "equals" : "differs from");
}

TEST(ServerKillsTest, TwoHundredKillsAndFullDisksLoseNothing) { SmallDisk::Run("48m", KillOften); }

}  // namespace
}  // namespace codband
