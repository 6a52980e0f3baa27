#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/random.h"
#include "codband/engine/engine.h"
#include "codband/engine/engine_testing.h"
#include "codband/engine/records.h"
#include "codband/store/fault_file_system.h"
#include "codband/store/rocksdb_store.h"

namespace codband::engine {

// Power cuts in one process: an engine with concurrent clients on a FaultFileSystem that fails and
// fills up in between. After every cut an engine starts on what is left of the disk.

// The entries of the write-ahead log that an engine has written, by their place, whatever
// checkpoints have deleted since. Thread-safe.
class LogRecorder {
 public:
  using Entries = std::map<std::uint64_t, std::string>;

  // A write begins and ends. Meanwhile a power cut may leave it or not.
  void Begin(const store::StoreBatch& batch) {
    const std::lock_guard lock(mutex_);
    if (cut_) return;
    for (const auto& entry : batch.entries()) {
      if (entry.table != store::Table::kLog || entry.kind != store::StoreBatch::Kind::kPut)
        continue;
      in_flight_[ReadNumberKey(entry.key).value()] = entry.value;
    }
  }
  void End(bool written) {
    const std::lock_guard lock(mutex_);
    if (cut_) return;
    if (written) written_.merge(in_flight_);
    in_flight_.clear();
  }

  // Cuts the power by calling `cut`; no write begins meanwhile, and later ones do not count.
  template <typename Function>
  void Cut(const Function& cut) {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    cuts_in_flight_ += in_flight_.empty() ? 0 : 1;
    cut();
  }
  // Cuts while a write was in flight.
  std::uint64_t cuts_in_flight() const {
    const std::lock_guard lock(mutex_);
    return cuts_in_flight_;
  }
  // The disk was found to hold the log up to `last`: not less than was written, and not more than
  // that and what was in flight.
  void FoundAfterCut(std::uint64_t last) {
    const std::lock_guard lock(mutex_);
    EXPECT_GE(last, written_.empty() ? 0 : written_.rbegin()->first) << "a durable entry is lost";
    std::erase_if(in_flight_, [&](const auto& entry) { return entry.first > last; });
    written_.merge(in_flight_);
    in_flight_.clear();
    EXPECT_EQ(last, written_.empty() ? 0 : written_.rbegin()->first) << "an entry of nobody";
    cut_ = false;
  }

  Entries After(std::uint64_t first, std::uint64_t last) const {
    const std::lock_guard lock(mutex_);
    return {written_.upper_bound(first), written_.upper_bound(last)};
  }

 private:
  mutable std::mutex mutex_;
  Entries written_;
  Entries in_flight_;
  bool cut_ = false;
  std::uint64_t cuts_in_flight_ = 0;
};

// A store that tells the recorder.
class RecordingStore final : public store::Store {
 public:
  RecordingStore(std::unique_ptr<store::Store> store, LogRecorder& recorder)
      : store_(std::move(store)), recorder_(recorder) {}

  Status Write(const store::StoreBatch& batch, bool sync) override {
    bool logs = false;  // the committer alone writes to the log
    for (const auto& entry : batch.entries()) {
      logs |= entry.table == store::Table::kLog && entry.kind == store::StoreBatch::Kind::kPut;
    }
    if (logs) recorder_.Begin(batch);
    Status status = store_->Write(batch, sync);
    if (logs) recorder_.End(status.ok());
    return status;
  }
  Status WriteBulk(store::StoreBatch batch) override { return store_->WriteBulk(std::move(batch)); }
  Status Get(store::Table table, std::string_view key, std::string& value) const override {
    return store_->Get(table, key, value);
  }
  Status Scan(store::Table table, std::string_view from, std::string_view to,
              const Visit& visit) const override {
    return store_->Scan(table, from, to, visit);
  }
  Status ScanPastDamage(store::Table table, const Visit& visit,
                        std::vector<Lost>& lost) const override {
    return store_->ScanPastDamage(table, visit, lost);
  }
  std::vector<std::string> Damage() const override { return store_->Damage(); }
  Status Backup(const std::filesystem::path& directory) override {
    return store_->Backup(directory);
  }
  Status Scrub(const Traces& traces) override { return store_->Scrub(traces); }
  Status Verify() const override { return store_->Verify(); }
  store::StoreStats Stats() const override { return store_->Stats(); }

 private:
  const std::unique_ptr<store::Store> store_;
  LogRecorder& recorder_;
};

// A disk and a store on it.
class DiskBox {
 public:
  explicit DiskBox(std::shared_ptr<store::FaultFileSystem> disk)
      : disk_(std::move(disk)), env_(rocksdb::NewCompositeEnv(disk_)) {}

  store::FaultFileSystem& disk() { return *disk_; }
  Result<std::unique_ptr<store::Store>> Open() {
    return store::OpenRocksDbStore(
        "/data", {.cache_bytes = 1 << 20, .write_buffer_bytes = 128 << 10, .env = env_.get()});
  }

 private:
  std::shared_ptr<store::FaultFileSystem> disk_;  // the environment has it, too
  std::unique_ptr<rocksdb::Env> env_;
};

// What all clients of a run share.
struct CutWorld {
  std::atomic<bool> cut = false;   // nothing is acknowledged from here on
  std::atomic<bool> stop = false;  // the clients end
  std::atomic<std::uint64_t> acknowledged = 0;
  std::atomic<std::int64_t> now_ms = 1'000'000;
  bool by_name = false;  // every name has a column, and there are new ones all the time
};

// Sends one request after another, most of them for users of its own, and remembers what was
// acknowledged before the power was cut.
class CutClient {
 public:
  struct Counts {
    std::uint64_t ranks = 0, rewards = 0, forgets = 0, items = 0, refused = 0;
  };

  CutClient(int number, CutWorld& world) : name_(fmt::format("c{}", number)), world_(world) {}

  void Run(Engine& engine, EventKey key) {
    RandomStream random(key, 2);
    while (!world_.stop) {
      if (!Step(engine, random)) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // What a start after a cut must have, besides what the log says.
  void Check(const Engine& engine) const {
    const auto item = engine.GetItem(ItemId());
    const std::uint64_t found =
        item.ok() ? static_cast<std::uint64_t>(item.value().features[0]) : 0;
    EXPECT_GE(found, item_acknowledged_) << "an item is lost";
    EXPECT_LE(found, item_sent_);
  }
  // By event, how.
  const std::map<std::string, std::string>& rewarded() const { return rewarded_; }
  const std::map<std::string, std::uint64_t>& forgotten() const { return forgotten_; }
  const Counts& counts() const { return counts_; }

 private:
  std::string ItemId() const { return name_ + "-item"; }

  // Whether it was acknowledged.
  bool Note(bool done, std::uint64_t& count) {
    if (world_.cut) return false;
    if (!done) {
      ++counts_.refused;
      return false;
    }
    ++count;
    ++world_.acknowledged;
    world_.now_ms += 10;
    return true;
  }

  bool Step(Engine& engine, RandomStream& random) {
    if (!rewarding_.empty()) return Reward(engine, rewarding_);
    const std::uint64_t what = random.Below(20);
    if (what == 0) return Forget(engine, fmt::format("{}-user{}", name_, random.Below(3)));
    if (what == 1) return PutItem(engine);
    const std::string user =
        what < 6 ? "everyone" : fmt::format("{}-user{}", name_, random.Below(3));
    const std::string event = fmt::format("{}-{}", name_, next_event_++);
    RankRequest request{.event_id = event, .user = user};
    if (world_.by_name) {
      request.context_features = {{fmt::format("{}-{}", name_, next_event_ / 5), 1}};
    }
    const Status ranked = Wait<Status>([&](auto done) {
      engine.Rank(
          std::move(request), [](const RankReply&) {}, std::move(done));
    });
    if (!Note(ranked.ok(), counts_.ranks)) return false;
    if (what == 2) return true;  // no reward comes
    rewarding_ = event;
    attempts_ = 0;
    return Reward(engine, event);
  }

  bool Reward(Engine& engine, const std::string& event) {
    ++attempts_;
    const double value = static_cast<double>(HashEvent(event) % 3) / 2;
    const auto reply =
        Wait<Result<RewardReply>>([&](auto done) { engine.Reward(event, value, std::move(done)); });
    if (!Note(reply.ok(), counts_.rewards)) return false;
    EXPECT_TRUE(reply.value().outcome == RewardOutcome::kAccepted ||
                (reply.value().outcome == RewardOutcome::kDuplicate && attempts_ > 1))
        << event << ": a durable decision is lost, or rewarded by nobody: "
        << static_cast<int>(reply.value().outcome) << " at attempt " << attempts_;
    rewarded_[event] =
        fmt::format("{} at attempt {}, sequence {}",
                    reply.value().outcome == RewardOutcome::kAccepted ? "accepted" : "duplicate",
                    attempts_, reply.value().sequence);
    rewarding_.clear();
    return true;
  }

  bool Forget(Engine& engine, const std::string& user) {
    const Status status = Wait<Status>([&](auto done) { engine.Forget(user, std::move(done)); });
    const bool done = status.ok() || status.code() == StatusCode::kNotFound;
    if (!Note(done, counts_.forgets)) return false;
    if (status.ok()) ++forgotten_[user];
    return true;
  }

  bool PutItem(Engine& engine) {
    const double version = static_cast<double>(++item_sent_);
    Item item{.id = ItemId(), .features = {version, 1, 0.5}, .named = {}, .tags = {name_}};
    if (world_.by_name) item.named = {{fmt::format("{}-{}", name_, item_sent_), 1}};
    const Status status =
        Wait<Status>([&](auto done) { engine.PutItems({item}, std::move(done)); });
    if (!Note(status.ok(), counts_.items)) return false;
    item_acknowledged_ = item_sent_;
    return true;
  }

  const std::string name_;
  CutWorld& world_;
  std::uint64_t next_event_ = 0;
  std::string rewarding_;  // ranked, and its reward not acknowledged
  int attempts_ = 0;
  std::uint64_t item_sent_ = 0, item_acknowledged_ = 0;
  std::map<std::string, std::string> rewarded_;     // acknowledged: by event, how
  std::map<std::string, std::uint64_t> forgotten_;  // acknowledged: how often
  Counts counts_;
};

}  // namespace codband::engine
