// A node that follows a partition which another one serves: it has learned the same, bit for bit,
// writes nothing to the log, and goes on as the owner.
#include "codband/server/cluster/standby.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "codband/cluster/instant_log.h"
#include "codband/cluster/store_replica.h"
#include "codband/engine/engine.h"
#include "codband/engine/faulty_policy.h"
#include "codband/store/test_support.h"

namespace codband::server {
namespace {

using engine::Engine;
using store::Table;

class StandbyTest : public store::StoreTest {
 protected:
  struct Owner {
    store::Claim claim = {};
    cluster::ReplicatedStore* store = nullptr;  // of the engine
    std::unique_ptr<Engine> engine = {};
  };
  store::PartitionState Acquire(const std::string& node) {
    log_.EndLeases();
    std::optional<Result<store::PartitionState>> state;
    log_.Acquire(0, node, 1000, [&](auto taken) { state = std::move(taken); });
    return state->value();
  }
  Owner Begin(const std::string& node) {
    Owner owner{.claim = Acquire(node).claim()};
    auto replica = cluster::StoreReplica::Open(directory_ / node).value();
    EXPECT_TRUE(cluster::CatchUpNow(log_, 0, *replica).ok());
    const auto position = replica->position();
    auto store = std::make_unique<cluster::ReplicatedStore>(replica->Take(), log_, owner.claim,
                                                            position, nullptr);
    owner.store = store.get();
    auto engine = Engine::Open(std::move(store), options_);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    owner.engine = std::move(engine).value();
    return owner;
  }
  Standby Following(const std::string& node) {
    return {log_, {.partition = 0, .directory = directory_ / node, .engine = options_}};
  }
  Owner TakeOver(Standby& standby, const std::string& node) {
    const store::PartitionState state = Acquire(node);
    Owner owner{.claim = state.claim()};
    auto engine = standby.Serve(state, nullptr,
                                [&](cluster::ReplicatedStore& store) { owner.store = &store; }, {});
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    if (engine.ok()) owner.engine = std::move(engine).value();
    return owner;
  }
  std::uint64_t End() const { return log_.State(0).last_sequence; }

  // The scores, whether or not the decision is kept.
  static std::vector<double> Rank(Engine& engine, int event) {
    std::vector<double> scores;
    std::promise<Status> done;
    engine.Rank(
        {.event_id = "event" + std::to_string(event),
         .user = "user" + std::to_string(event % 9),
         .candidates = {{.id = "a", .features = {1, 0}}, {.id = "b", .features = {0.3, 1}}}},
        [&](const engine::RankReply& reply) {
          for (const auto& item : reply.ranking) {
            scores.insert(scores.end(), {item.score, item.mean, item.width});
          }
        },
        [&](Status status) { done.set_value(std::move(status)); });
    done.get_future().wait();
    return scores;
  }
  static Status Reward(Engine& engine, int event, double value) {
    std::promise<Status> done;
    engine.Reward("event" + std::to_string(event), value,
                  [&](const auto& reply) { done.set_value(reply.status()); });
    return done.get_future().get();
  }
  static void Teach(Engine& engine, int from, int to) {
    for (int i = from; i < to; ++i) {
      Rank(engine, i);
      ASSERT_TRUE(Reward(engine, i, i % 3 == 0 ? 1 : 0).ok());
    }
  }
  // Both have the same frames and have learned the same.
  void ExpectSame(Owner& one, Owner& other) {
    for (int i = 1000; i < 1020; ++i) {
      EXPECT_EQ(Rank(*one.engine, i), Rank(*other.engine, i)) << i;
    }
    ASSERT_TRUE(one.engine->Checkpoint().ok());
    ASSERT_TRUE(other.engine->Checkpoint().ok());
    for (const Table table : {Table::kUsers, Table::kPeople, Table::kCheckpoint}) {
      EXPECT_EQ(store::All(*one.store, table), store::All(*other.store, table))
          << static_cast<int>(table);
      EXPECT_FALSE(store::All(*one.store, table).empty());
    }
  }
  void StoreCheckpointOf(Owner& owner) {
    ASSERT_TRUE(owner.engine->Checkpoint().ok());
    ASSERT_TRUE(owner.store->Backup(directory_ / "snapshot").ok());
    {
      const auto snapshot = Open(directory_ / "snapshot", {.read_only = true});
      std::optional<Status> stored;
      cluster::StoreCheckpoint(log_, owner.claim, cluster::ReadCheckpoint(*snapshot).value(),
                               [&](const Status& status) { stored = status; });
      ASSERT_TRUE(stored && stored->ok());
    }
    std::filesystem::remove_all(directory_ / "snapshot");
  }

  cluster::InstantLog log_{1};
  engine::EngineOptions options_ = {.dim = 2,
                                    .seed = 5,
                                    .reward_wait_ms = 3'600'000,
                                    .users_in_memory = 4,
                                    .checkpoint_events = 7,
                                    .erase_delay_ms = 20,
                                    .moves_between_machines = true};
};

TEST_F(StandbyTest, HasLearnedTheSameBitForBitAndWritesNothing) {
  Owner first = Begin("one");
  Standby standby = Following("two");
  for (int i = 0; i < 10; ++i) {
    Teach(*first.engine, 6 * i, 6 * i + 6);
    const std::uint64_t frames = End();
    const Status followed = standby.Follow(frames - 1);
    ASSERT_TRUE(followed.ok()) << followed.ToString();
    EXPECT_EQ(standby.reached(), frames - 1);
    EXPECT_EQ(End(), frames);
  }
  Rank(*first.engine, 60);  // waits for its reward
  Owner second = TakeOver(standby, "two");
  ASSERT_NE(second.engine, nullptr);
  EXPECT_EQ(second.engine->Stats().applied_sequence, 60U);
  EXPECT_EQ(second.engine->Stats().pending, 1U);
  ExpectSame(first, second);
  // It goes on alone.
  EXPECT_EQ(Reward(*first.engine, 60, 1).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Reward(*second.engine, 60, 1).ok());
}

TEST_F(StandbyTest, BeginsWithTheCheckpointIfTheLogDoesNotReachBackToIt) {
  Owner first = Begin("one");
  Standby standby = Following("two");
  Teach(*first.engine, 0, 10);
  ASSERT_TRUE(standby.Follow(End() - 1).ok());
  Teach(*first.engine, 10, 40);
  StoreCheckpointOf(first);
  ASSERT_GT(log_.State(0).first_sequence, standby.reached() + 1);
  Teach(*first.engine, 40, 45);
  EXPECT_EQ(standby.Follow(End() - 1).code(), StatusCode::kNotFound);
  EXPECT_EQ(standby.reached(), 0U);
  ASSERT_TRUE(standby.Follow(End() - 1).ok());
  EXPECT_EQ(standby.reached(), End() - 1);
  Owner second = TakeOver(standby, "two");
  ASSERT_NE(second.engine, nullptr);
  ExpectSame(first, second);
}

TEST_F(StandbyTest, ALogThatIsAwayIsFollowedAgainLater) {
  Owner first = Begin("one");
  Teach(*first.engine, 0, 10);
  // A copy that is there goes on from where it is.
  for (int i = 0; i < 2; ++i) {
    Standby standby = Following("two");
    ASSERT_TRUE(standby.Follow(End() - 1).ok());
    standby.Stop();
    Teach(*first.engine, 10 + 10 * i, 20 + 10 * i);
    EXPECT_EQ(standby.Follow(End() - 1).code(), StatusCode::kUnavailable);
  }
  Standby standby = Following("two");
  ASSERT_TRUE(standby.Follow(End() - 1).ok());
  Owner second = TakeOver(standby, "two");
  ASSERT_NE(second.engine, nullptr);
  ExpectSame(first, second);
}

// What the owner leaves out, because the policy could not learn it, the standby leaves out too: it
// begins anew from its copy.
TEST_F(StandbyTest, LeavesOutWhatTheOwnerHasPutIntoQuarantine) {
  options_.make_policy = engine::FaultyPolicy::Maker([](double reward) {
    if (reward == 7) throw std::runtime_error("seven");
  });
  Owner first = Begin("one");
  Standby standby = Following("two");
  Teach(*first.engine, 0, 10);
  ASSERT_TRUE(standby.Follow(End() - 1).ok());
  Rank(*first.engine, 10);
  EXPECT_EQ(Reward(*first.engine, 10, 7).code(), StatusCode::kRejected);
  Teach(*first.engine, 11, 20);
  EXPECT_FALSE(standby.Follow(End() - 1).ok());
  const Status again = standby.Follow(End() - 1);
  ASSERT_TRUE(again.ok()) << again.ToString();
  Owner second = TakeOver(standby, "two");
  ASSERT_NE(second.engine, nullptr);
  EXPECT_EQ(second.engine->Quarantined().size(), 1U);
  ExpectSame(first, second);
}

TEST_F(StandbyTest, ErasesWhoWasForgottenFromItsOwnFiles) {
  Owner first = Begin("one");
  Standby standby = Following("two");
  Teach(*first.engine, 0, 30);
  Rank(*first.engine, 93);  // of user 3, waits for its reward
  ASSERT_TRUE(standby.Follow(End() - 1).ok());
  std::promise<Status> forgotten;
  first.engine->Forget("user3", [&](Status status) { forgotten.set_value(std::move(status)); });
  ASSERT_TRUE(forgotten.get_future().get().ok());
  const std::uint64_t sequence = first.engine->Stats().committed_sequence;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (standby.erased() < sequence && std::chrono::steady_clock::now() < end) {
    const int event = static_cast<int>(9 * (100 + End()));  // of user 0
    Teach(*first.engine, event, event + 1);
    const Status followed = standby.Follow(End() - 1);
    ASSERT_TRUE(followed.ok()) << followed.ToString();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(standby.erased(), sequence);
  Owner second = TakeOver(standby, "two");
  ASSERT_NE(second.engine, nullptr);
  EXPECT_EQ(second.engine->GetUser("user3").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace codband::server
