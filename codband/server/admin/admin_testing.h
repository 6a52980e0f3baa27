#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// A temporary directory with room for data directories of a small engine.
class AdminTest : public ::testing::Test {
 protected:
  AdminTest() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("codband_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~AdminTest() override { std::filesystem::remove_all(root_); }

  std::filesystem::path path(const std::string& name) const { return root_ / name; }
  std::filesystem::path data() const { return path("data"); }

  // Two features an item.
  std::unique_ptr<engine::Engine> Open(const std::string& policy = "codband") const {
    return engine::Engine::Open(store::OpenRocksDbStore(data()).value(),
                                {.policy = policy, .dim = 2, .sync = false})
        .value();
  }

  // Three users in turn are recommended one of two items and like the first.
  static void Learn(engine::Engine& engine, int visits) {
    std::promise<Status> stored;
    engine.PutItems({{.id = "a", .features = {1, 0}, .named = {}, .tags = {}},
                     {.id = "b", .features = {0, 1}, .named = {}, .tags = {}}},
                    [&](Status status) { stored.set_value(std::move(status)); });
    ASSERT_TRUE(stored.get_future().get().ok());
    for (int v = 0; v < visits; ++v) {
      const std::string event = "e" + std::to_string(v);
      std::string chosen;
      std::promise<Status> ranked;
      engine.Rank(
          {.event_id = event, .user = "u" + std::to_string(v % 3)},
          [&](const engine::RankReply& reply) { chosen = reply.reward_action_id; },
          [&](Status status) { ranked.set_value(std::move(status)); });
      ASSERT_TRUE(ranked.get_future().get().ok());
      std::promise<bool> rewarded;
      engine.Reward(event, chosen == "a" ? 1 : 0, [&](const Result<engine::RewardReply>& reply) {
        rewarded.set_value(reply.ok());
      });
      ASSERT_TRUE(rewarded.get_future().get());
    }
  }

 private:
  std::filesystem::path root_;
};

}  // namespace codband::server
