#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/store/rocksdb_store.h"

namespace codband::engine {

class TempDirectory {
 public:
  TempDirectory() {
    std::string name = testing::TempDir() + "codband_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// All that was learned, as it lies on disk after a checkpoint: models, users, people.
using StoredState = std::map<std::pair<store::Table, std::string>, std::string>;
inline StoredState ReadStoredState(const store::Store& store) {
  StoredState state;
  for (const store::Table table :
       {store::Table::kCheckpoint, store::Table::kUsers, store::Table::kPeople}) {
    const Status status = store.Scan(table, {}, {}, [&](auto key, auto value) {
      state.emplace(std::pair(table, std::string(key)), std::string(value));
      return true;
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return state;
}
inline StoredState ReadStoredState(const std::filesystem::path& directory) {
  const auto store = store::OpenRocksDbStore(directory, {.read_only = true});
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  return store.ok() ? ReadStoredState(*store.value()) : StoredState();
}

// Waits until condition() holds; a test that waits in vain fails after a minute.
template <typename Condition>
void Await(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "waited in vain";
    std::this_thread::yield();
  }
}

// Calls start(done) and waits for what done is given.
template <typename T, typename Start>
T Wait(const Start& start) {
  std::promise<T> promise;
  start([&promise](T value) { promise.set_value(std::move(value)); });
  return promise.get_future().get();
}

// An engine in a directory of its own, with a clock that the test sets, and calls that wait.
class EngineBox {
 public:
  // With `default_dim` 0 every name has a column, unless the options say otherwise.
  explicit EngineBox(EngineOptions options = {}, std::size_t default_dim = 3)
      : options_(std::move(options)) {
    if (options_.dim == 0) options_.dim = default_dim;
    options_.sync = false;
    if (!options_.name_secret) options_.name_secret = SipKey{.low = 1, .high = 2};
    options_.now_ms = [this] { return now_ms_.load(); };
    options_.steady_ms = [this] { return steady_ms_.load(); };
    options_.boot_id = "first";
    Open();
  }

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  EngineOptions& options() { return options_; }
  const std::filesystem::path& directory() const { return directory_.path(); }
  void Advance(std::int64_t ms) {
    now_ms_ += ms;
    steady_ms_ += ms;
  }
  // Somebody sets the wall clock.
  void SetWallClock(std::int64_t by_ms) { now_ms_ += by_ms; }
  // The machine is started again; the engine is closed.
  void Reboot(std::int64_t down_ms) {
    now_ms_ += down_ms;
    steady_ms_ = 7;
    options_.boot_id += "'";
  }
  std::int64_t now_ms() const { return now_ms_; }

  Status TryOpen() {
    engine_.reset();
    auto store = store::OpenRocksDbStore(directory_.path());
    if (!store.ok()) return store.status();
    auto engine = Engine::Open(std::move(store).value(), options_, [this](const auto& decision) {
      const std::lock_guard lock(mutex_);
      finished_.push_back(decision);
    });
    if (!engine.ok()) return engine.status();
    engine_ = std::move(engine).value();
    return {};
  }
  void Open() {
    const Status status = TryOpen();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void Close() { engine_.reset(); }

  Result<RankReply> Rank(RankRequest request) {
    RankReply reply;
    const Status status = Wait<Status>([&](auto done) {
      engine_->Rank(
          std::move(request), [&](const RankReply& ranked) { reply = ranked; }, std::move(done));
    });
    if (!status.ok()) return status;
    return reply;
  }
  Result<RewardReply> Reward(const std::string& event_id, double value) {
    return Wait<Result<RewardReply>>(
        [&](auto done) { engine_->Reward(event_id, value, std::move(done)); });
  }
  Status Activate(const std::string& event_id) {
    return Wait<Status>([&](auto done) { engine_->Activate(event_id, std::move(done)); });
  }
  Status Put(std::vector<Item> items) {
    return Wait<Status>([&](auto done) { engine_->PutItems(std::move(items), std::move(done)); });
  }
  Status Delete(const std::string& id) {
    return Wait<Status>([&](auto done) { engine_->DeleteItem(id, std::move(done)); });
  }
  Status Forget(const std::string& user) {
    return Wait<Status>([&](auto done) { engine_->Forget(user, std::move(done)); });
  }

  std::vector<FinishedDecision> TakeFinished() {
    const std::lock_guard lock(mutex_);
    return std::exchange(finished_, {});
  }

 private:
  TempDirectory directory_;
  std::atomic<std::int64_t> now_ms_{1'000'000};
  std::atomic<std::int64_t> steady_ms_{500};
  EngineOptions options_;
  std::mutex mutex_;
  std::vector<FinishedDecision> finished_;
  std::unique_ptr<Engine> engine_;
};

inline std::vector<Item> ThreeItems() {
  return {{.id = "a", .features = {1, 0, 0}, .named = {}, .tags = {"rock", "loud"}},
          {.id = "b", .features = {0, 1, 0}, .named = {}, .tags = {"jazz"}},
          {.id = "c", .features = {0, 0, 1}, .named = {}, .tags = {"rock"}}};
}

// One visit of a user who likes the item `liked` and nothing else. Returns the event id.
inline std::string Visit(EngineBox& box, const std::string& user, const std::string& liked,
                         int event) {
  const std::string event_id = user + "-" + std::to_string(event);
  const auto reply = box.Rank({.event_id = event_id, .user = user});
  EXPECT_TRUE(reply.ok()) << reply.status().ToString();
  const auto reward = box.Reward(event_id, reply.value().reward_action_id == liked ? 1.0 : 0.0);
  EXPECT_TRUE(reward.ok()) << reward.status().ToString();
  EXPECT_EQ(reward.value().outcome, RewardOutcome::kAccepted);
  return event_id;
}

// A population in which even users like a, odd ones b, until they swap.
inline void Play(EngineBox& box, int from, int to, int users = 6) {
  for (int round = from; round < to; ++round) {
    for (int user = 0; user < users; ++user) {
      const bool likes_a = (user % 2 == 0) == (round < 60 || user > 1);
      Visit(box, "user" + std::to_string(user), likes_a ? "a" : "b", round);
    }
  }
}

}  // namespace codband::engine
