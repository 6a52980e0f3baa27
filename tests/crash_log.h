#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/engine/engine_testing.h"
#include "codband/engine/records.h"
#include "codband/store/rocksdb_store.h"
#include "tests/crash_client.h"
#include "tests/server_process.h"

namespace codband {

// What the crash tests of the real server share: its catalogue, its log of what is to be learned,
// and the state of a twin.

inline constexpr int kDim = 6;

inline std::vector<engine::Item> Items() {
  std::vector<engine::Item> items;
  for (std::size_t i = 0; i < kDim; ++i) {
    engine::Item item{.id = "item" + std::to_string(i),
                      .features = std::vector<double>(kDim),
                      .named = {},
                      .tags = {}};
    item.features[i] = 1;
    items.push_back(item);
  }
  return items;
}

inline void PutItems(const ServerProcess& server) {
  const auto client = server.Connect();
  ASSERT_NE(client, nullptr);
  for (const engine::Item& item : Items()) {
    const auto reply =
        client->Send({.method = "PUT",
                      .target = "/v1/items/" + item.id,
                      .body = fmt::format(R"({{"features":[{}]}})", fmt::join(item.features, ","))},
                     kPatience);
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    ASSERT_LT(reply.value().status, 300U) << reply.value().body;
  }
}

struct LogEntry {
  std::string bytes;
  std::uint64_t event;
  bool forgets;  // a user, and has no event
};

inline LogEntry DecodeEntry(std::string_view value) {
  const auto record = engine::LogRecord::Decode(value);
  EXPECT_TRUE(record.ok());
  return {.bytes = std::string(value),
          .event = record.ok() ? record.value().event : 0,
          .forgets = record.ok() && record.value().kind == engine::LogRecord::Kind::kForget};
}

using Log = std::map<std::string, LogEntry>;

// Adds the entries that are in the log now; a checkpoint may have deleted earlier ones.
inline void ReadLog(const std::filesystem::path& data, Log& log) {
  const auto store = store::OpenRocksDbStore(data, {.read_only = true});
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  if (!store.ok()) return;
  const Status read = store.value()->Scan(store::Table::kLog, {}, {}, [&](auto key, auto value) {
    const auto [entry, is_new] = log.try_emplace(std::string(key), DecodeEntry(value));
    EXPECT_EQ(entry->second.bytes, value) << "an entry of the log has changed";
    return true;
  });
  EXPECT_TRUE(read.ok()) << read.ToString();
}

// The state of an engine that learns the first `count` entries of the log without interruption.
inline engine::StoredState LearnUndisturbed(const Log& log, std::size_t count) {
  const engine::TempDirectory directory;
  {
    auto store = std::move(store::OpenRocksDbStore(directory.path())).value();
    store::StoreBatch batch;
    auto entry = log.begin();
    for (std::size_t i = 0; i < count; ++i, ++entry) {
      batch.Put(store::Table::kLog, entry->first, entry->second.bytes);
    }
    EXPECT_TRUE(store->Write(batch, false).ok());
    const auto engine = engine::Engine::Open(std::move(store), {.dim = kDim});
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  }
  return engine::ReadStoredState(directory.path());
}

inline std::size_t CountEvents(const std::deque<CrashClient>& clients) {
  std::size_t count = 0;
  for (const CrashClient& client : clients) count += client.acknowledged();
  return count;
}

// Expects that the log holds every acknowledged event once and no other.
inline void ExpectLogHolds(const Log& log, const std::deque<CrashClient>& clients) {
  std::multiset<std::uint64_t> acknowledged;
  for (const CrashClient& client : clients) {
    for (const CrashClient::Event& event : client.events())
      acknowledged.insert(engine::HashEvent(event.id));
  }
  std::multiset<std::uint64_t> logged;
  for (const auto& [key, entry] : log) {
    if (!entry.forgets) logged.insert(entry.event);
  }
  EXPECT_EQ(acknowledged.size(), logged.size());
  EXPECT_TRUE(acknowledged == logged);
}

}  // namespace codband
