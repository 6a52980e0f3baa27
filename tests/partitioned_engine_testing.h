#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "codband/cluster/instant_log.h"
#include "codband/cluster/replicated_store.h"
#include "codband/cluster/store_replica.h"
#include "codband/engine/engine.h"
#include "codband/engine/partition.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/server/cluster/shared_catalogue.h"
#include "codband/store/test_support.h"

namespace codband::engine {

// Two partitions of one loop, whose engines nodes take over.
class PartitionedEngineTest : public store::StoreTest {
 protected:
  struct Served {
    store::Claim claim;
    std::unique_ptr<Engine> engine;
  };
  Served TakeOver(const std::string& node, store::Partition partition) {
    log_.EndLeases();
    std::optional<Result<store::PartitionState>> state;
    log_.Acquire(partition, node, 1000, [&](auto taken) { state = std::move(taken); });
    auto replica =
        cluster::StoreReplica::Open(directory_ / (node + std::to_string(partition))).value();
    const Status caught_up = cluster::CatchUpNow(log_, partition, *replica);
    EXPECT_TRUE(caught_up.ok()) << caught_up.ToString();
    const auto position = replica->position();
    auto store = std::make_unique<cluster::ReplicatedStore>(
        replica->Take(), log_, state->value().claim(), position, nullptr);
    EngineOptions options{.dim = dim_, .columns = columns_, .seed = 5, .checkpoint_events = 50};
    options.name_secret = SipKey{.low = 1, .high = 2};
    options.partition = partition;
    options.share_catalogue = [this](CatalogueChange change, auto done) {
      catalogue_->Change(std::move(change), std::move(done));
    };
    auto engine = Engine::Open(std::move(store), options);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    return {state->value().claim(), std::move(engine).value()};
  }
  // The means, and the id of the event.
  struct Ranked {
    std::vector<double> scores;
    std::string event;
    std::string action;
  };
  static Ranked Rank(Engine& engine, const std::string& user, const std::string& event = {}) {
    Ranked ranked;
    std::promise<Status> done;
    engine.Rank(
        {.event_id = event,
         .user = user,
         .candidates = {{.id = "a", .features = {1, 0}}, {.id = "b", .features = {0, 1}}}},
        [&](const RankReply& reply) {
          ranked.event = reply.event_id;
          ranked.action = reply.reward_action_id;
          ranked.scores.resize(4);
          for (const RankedItem& item : reply.ranking) {
            ranked.scores[item.id == "a" ? 0 : 1] = item.mean;
            ranked.scores[item.id == "a" ? 2 : 3] = item.width;
          }
        },
        [&](Status status) { done.set_value(std::move(status)); });
    const Status status = done.get_future().get();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return ranked;
  }
  // "a" is good, "b" is not.
  static void Teach(Engine& engine, int rewards) {
    for (int i = 0; i < rewards; ++i) {
      const Ranked ranked = Rank(engine, "user" + std::to_string(i % 5));
      std::promise<Result<RewardReply>> done;
      engine.Reward(ranked.event, ranked.action == "a" ? 1 : 0,
                    [&](Result<RewardReply> reply) { done.set_value(std::move(reply)); });
      const auto reply = done.get_future().get();
      ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    }
  }
  static bool Becomes(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  static Status PutItem(Engine& engine, const std::string& id) {
    std::promise<Status> done;
    engine.PutItems({{.id = id, .features = {1, 2}, .named = {}, .tags = {"t"}}},
                    [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  static Status DeleteItem(Engine& engine, const std::string& id) {
    std::promise<Status> done;
    engine.DeleteItem(id, [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  static std::string Items(const Engine& engine) {
    std::string ids;
    for (const Item& item : engine.ListItems("", 100)) ids += item.id + " ";
    return ids;
  }

  std::size_t dim_ = 2;
  features::ColumnLimits columns_ = {};
  cluster::InstantLog log_{2};
  std::unique_ptr<server::SharedCatalogue> catalogue_ =
      std::make_unique<server::SharedCatalogue>(log_, LogSink());
};

}  // namespace codband::engine
