// The real server is killed at random moments, loses the end of its write-ahead log, or runs out of
// disk. Whatever it has acknowledged must be there exactly once, and its state must equal, bit for
// bit, that of a server that ran undisturbed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "codband/base/random.h"
#include "codband/engine/engine.h"
#include "codband/engine/engine_testing.h"
#include "codband/engine/records.h"
#include "codband/store/rocksdb_store.h"
#include "tests/crash_client.h"
#include "tests/crash_log.h"
#include "tests/server_process.h"

namespace codband {
namespace {

const std::vector<std::string> kKeepLog = {"features.dimension=6", "memory.users=1000000",
                                           "durability.checkpoint_events=1000000",
                                           "durability.checkpoint_seconds=86400"};
const std::vector<std::string> kManyCheckpoints = {"features.dimension=6", "memory.users=2",
                                                   "durability.checkpoint_events=7"};

// The state with all times set to 0, and without what is kept by time: they differ between two
// runs.
engine::StoredState WithoutTimes(const engine::StoredState& state) {
  engine::StoredState out;
  for (const auto& [key, bytes] : state) {
    if (key.second.starts_with("groups/")) continue;
    std::string& kept = out[key] = bytes;
    if (key.first == store::Table::kCheckpoint) {
      engine::CheckpointRecord record = engine::CheckpointRecord::Decode(bytes).value();
      for (engine::Change& change : record.recent) change.time_ms = 0;
      kept = record.Encode();
    } else if (key.first == store::Table::kPeople) {
      ByteReader in(bytes);
      engine::Person person;
      person.Load(in);
      EXPECT_TRUE(in.ok());
      person.first_ms = 0;
      for (engine::Person::Move& move : person.moves) move.time_ms = 0;
      for (engine::Person::Tick& tick : person.ticks) tick.time_s = 0;
      ByteWriter writer;
      person.Save(writer);
      kept = writer.Take();
    }
  }
  return out;
}

// Runs clients against a server that is killed `kills` times, after a random number of rewards and
// a random moment more.
void KillOften(const std::filesystem::path& data, const std::vector<std::string>& settings,
               std::deque<CrashClient>& clients, int kills, std::uint64_t seed, Log& log) {
  RandomStream random({.seed = seed, .event = 0}, 1);
  for (int kill = 0; kill < kills; ++kill) {
    ServerProcess server(data, settings);
    ASSERT_TRUE(server.listens());
    if (kill == 0) PutItems(server);
    std::vector<std::thread> threads;
    std::atomic<std::size_t> running = clients.size();
    for (CrashClient& client : clients) {
      threads.emplace_back([&] {
        client.Run(server);
        --running;
      });
    }
    const std::uint64_t enough = CountEvents(clients) + 3 + random.Below(60);
    while (CountEvents(clients) < enough && running == clients.size()) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(3000)));
    EXPECT_EQ(running, clients.size()) << "a client gave up before the server was killed";
    EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);
    for (std::thread& thread : threads) thread.join();
    ReadLog(data, log);
  }
}

TEST(ServerCrashTest, ManyClientsLoseNothing) {
  const engine::TempDirectory directory;
  const std::filesystem::path data = directory.path() / "data";
  std::deque<CrashClient> clients;
  for (int i = 0; i < 6; ++i) clients.emplace_back(i, 3);
  Log log;
  KillOften(data, kKeepLog, clients, 20, 1, log);
  {
    const ServerProcess server(data, kKeepLog);
    ASSERT_TRUE(server.listens());
    for (CrashClient& client : clients) client.Settle(server);
  }  // killed once more, with nothing in flight
  ReadLog(data, log);
  EXPECT_GT(log.size(), 100U);
  ExpectLogHolds(log, clients);

  ServerProcess server(data, kKeepLog);
  ASSERT_TRUE(server.listens());
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  const engine::StoredState learned = engine::ReadStoredState(data);
  EXPECT_EQ(WithoutTimes(learned).size(), 1U + 2U * 6U * 3U);
  EXPECT_TRUE(learned == LearnUndisturbed(log, log.size()));
}

TEST(ServerCrashTest, CheckpointsInBetweenChangeNothing) {
  const engine::TempDirectory directory;
  const std::filesystem::path data = directory.path() / "data";
  std::deque<CrashClient> clients;
  clients.emplace_back(0, 5);
  Log log;
  KillOften(data, kManyCheckpoints, clients, 12, 2, log);
  ServerProcess server(data, kManyCheckpoints);
  ASSERT_TRUE(server.listens());
  clients.front().Settle(server);
  EXPECT_EQ(server.Stop(SIGTERM), 0);

  // With one client the order is known: an engine that is never killed gets the same requests.
  std::string identity;
  ASSERT_TRUE(store::OpenRocksDbStore(data, {.read_only = true})
                  .value()
                  ->Get(store::Table::kMeta, engine::Identity::kKey, identity)
                  .ok());
  engine::EngineBox twin(
      {.dim = kDim, .name_secret = engine::Identity::Decode(identity).value().name_secret});
  ASSERT_TRUE(twin.Put(Items()).ok());
  std::vector<engine::Candidate> candidates;
  for (const engine::Item& item : Items()) candidates.push_back({.id = item.id});
  EXPECT_GT(clients.front().events().size(), 50U);
  for (const CrashClient::Event& event : clients.front().events()) {
    ASSERT_TRUE(
        twin.Rank({.event_id = event.id, .user = event.user, .candidates = candidates}).ok());
    ASSERT_EQ(twin.Reward(event.id, event.reward).value().outcome,
              engine::RewardOutcome::kAccepted);
  }
  twin.Close();
  EXPECT_TRUE(WithoutTimes(engine::ReadStoredState(data)) ==
              WithoutTimes(engine::ReadStoredState(twin.directory())));
}

std::filesystem::path NewestWal(const std::filesystem::path& data) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().extension() != ".log") continue;
    if (newest.empty() || newest.filename() < entry.path().filename()) newest = entry.path();
  }
  return newest;
}

TEST(ServerCrashTest, ALogThatLostItsEndIsAPrefix) {
  const engine::TempDirectory directory;
  const std::filesystem::path data = directory.path() / "data";
  std::deque<CrashClient> clients;
  clients.emplace_back(0, 3);
  Log log;
  KillOften(data, kKeepLog, clients, 1, 3, log);
  const std::filesystem::path wal = NewestWal(data);
  ASSERT_FALSE(wal.empty());
  const auto size = std::filesystem::file_size(wal);
  const std::vector<CrashClient::Event>& events = clients.front().events();
  ASSERT_GE(events.size(), 3U);
  // The last entry may be one that was not acknowledged.
  ASSERT_GE(log.size(), events.size());
  ASSERT_LE(log.size(), events.size() + 1);
  std::size_t i = 0;
  for (const auto& [key, entry] : log) {
    if (i < events.size()) {
      EXPECT_EQ(entry.event, engine::HashEvent(events[i].id)) << i;
    }
    ++i;
  }
  RandomStream random({.seed = 4, .event = 0}, 1);
  std::set<std::size_t> lengths;
  for (int cut = 0; cut < 12; ++cut) {
    const std::filesystem::path copy = directory.path() / fmt::format("cut{}", cut);
    std::filesystem::copy(data, copy, std::filesystem::copy_options::recursive);
    const std::uint64_t kept = random.Below(size + 1);
    std::filesystem::resize_file(copy / std::filesystem::relative(wal, data), kept);
    std::size_t entries = 0;
    {
      auto store = store::OpenRocksDbStore(copy);
      ASSERT_TRUE(store.ok()) << kept << ": " << store.status().ToString();
      const auto engine = engine::Engine::Open(std::move(store).value(), {.dim = kDim});
      ASSERT_TRUE(engine.ok()) << kept << ": " << engine.status().ToString();
      entries = engine.value()->Stats().applied_sequence;
    }
    ASSERT_LE(entries, log.size());
    lengths.insert(entries);
    EXPECT_TRUE(engine::ReadStoredState(copy) == LearnUndisturbed(log, entries)) << kept;
    // The real server starts with it as well.
    if (cut == 0) {
      const ServerProcess server(copy, kKeepLog);
      EXPECT_TRUE(server.listens());
    }
    std::filesystem::remove_all(copy);
  }
  EXPECT_GT(lengths.size(), 3U);
}

}  // namespace
}  // namespace codband
