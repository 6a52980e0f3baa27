// The engine on the log of a partition: another node that follows the log learns the same, bit for
// bit, and knows everything that was acknowledged.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>

#include "codband/cluster/instant_log.h"
#include "codband/cluster/replicated_store.h"
#include "codband/cluster/store_replica.h"
#include "codband/engine/engine.h"
#include "codband/store/test_support.h"

namespace codband::engine {
namespace {

class ReplicatedEngineTest : public store::StoreTest {
 protected:
  std::unique_ptr<Engine> TakeOver(const std::string& node) {
    log_.EndLeases();
    std::optional<Result<store::PartitionState>> state;
    log_.Acquire(0, node, 1000, [&](auto taken) { state = std::move(taken); });
    auto replica = cluster::StoreReplica::Open(directory_ / node);
    EXPECT_TRUE(replica.ok()) << replica.status().ToString();
    const Status caught_up = cluster::CatchUpNow(log_, 0, *replica.value());
    EXPECT_TRUE(caught_up.ok()) << caught_up.ToString();
    const auto position = replica.value()->position();
    auto store = std::make_unique<cluster::ReplicatedStore>(
        replica.value()->Take(), log_, state->value().claim(), position, nullptr);
    auto engine = Engine::Open(std::move(store), options_);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }
  static RankRequest RequestOf(int event) {
    return {.event_id = "event" + std::to_string(event),
            .user = "user" + std::to_string(event % 9),
            .candidates = {{.id = "a", .features = {1, 0}}, {.id = "b", .features = {0.3, 1}}}};
  }
  // The scores, and how the decision went.
  static std::pair<std::vector<double>, Status> Rank(Engine& engine, int event) {
    std::vector<double> scores;
    std::promise<Status> done;
    engine.Rank(
        RequestOf(event),
        [&](const RankReply& reply) {
          for (const RankedItem& item : reply.ranking) {
            scores.insert(scores.end(), {item.score, item.mean, item.width, item.probability});
          }
        },
        [&](Status status) { done.set_value(std::move(status)); });
    Status status = done.get_future().get();
    return {scores, std::move(status)};
  }
  static Result<RewardReply> Reward(Engine& engine, int event) {
    std::promise<Result<RewardReply>> done;
    engine.Reward("event" + std::to_string(event), event % 3 == 0 ? 1 : 0,
                  [&](Result<RewardReply> reply) { done.set_value(std::move(reply)); });
    return done.get_future().get();
  }

  cluster::InstantLog log_{1};
  EngineOptions options_ = {.dim = 2,
                            .seed = 5,
                            .reward_wait_ms = 3'600'000,
                            .users_in_memory = 4,
                            .checkpoint_events = 7,
                            .moves_between_machines = true};
};

TEST_F(ReplicatedEngineTest, AnotherNodeGoesOnBitForBit) {
  const auto first = TakeOver("one");
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Rank(*first, i).second.ok());
    if (i >= 50) continue;  // these wait for their reward
    const auto reply = Reward(*first, i);
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    EXPECT_EQ(reply.value().outcome, RewardOutcome::kAccepted);
  }
  // The first has trimmed its log of what is to be learned; the other one has no checkpoint.
  EXPECT_GT(first->Stats().checkpoint_sequence, 10U);
  const auto second = TakeOver("two");
  EXPECT_EQ(second->Stats().applied_sequence, 50U);
  EXPECT_EQ(second->Stats().pending, 10U);
  for (int i = 100; i < 120; ++i) {
    const auto late = Rank(*first, i);
    const auto fresh = Rank(*second, i);
    EXPECT_EQ(late.first, fresh.first) << i;
    EXPECT_EQ(late.second.code(), StatusCode::kUnavailable);
    EXPECT_TRUE(fresh.second.ok());
  }
  EXPECT_EQ(Reward(*first, 55).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Reward(*second, 55).value().outcome, RewardOutcome::kAccepted);
  EXPECT_EQ(Reward(*second, 3).value().outcome, RewardOutcome::kDuplicate);
}

// The machines that take over, one after the other, have clocks that are wrong by an hour.
TEST_F(ReplicatedEngineTest, NoWaitIsCutShortByTheClockOfAnotherMachine) {
  constexpr std::int64_t kMinute = 60'000;
  std::atomic<std::int64_t> steady_ms{1000};
  std::atomic<std::int64_t> wall_ms{1'700'000'000'000};
  options_.steady_ms = [&] { return steady_ms.load(); };
  options_.now_ms = [&] { return wall_ms.load(); };
  options_.boot_id = "machine0";
  auto engine = TakeOver("node0");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Rank(*engine, i).second.ok());
  // Fifty minutes pass in all, ten on each machine; its wait is an hour.
  for (int machine = 1; machine <= 5; ++machine) {
    steady_ms += 10 * kMinute;
    wall_ms += 10 * kMinute;
    EXPECT_EQ(Reward(*engine, machine).value().outcome, RewardOutcome::kAccepted) << machine;
    wall_ms += (machine % 2 == 0 ? -120 : 120) * kMinute;
    steady_ms = 500 * machine;
    options_.boot_id = "machine" + std::to_string(machine);
    engine = TakeOver("node" + std::to_string(machine));
  }
  EXPECT_EQ(Reward(*engine, 6).value().outcome, RewardOutcome::kAccepted);
  steady_ms += 11 * kMinute;
  EXPECT_EQ(Reward(*engine, 7).value().outcome, RewardOutcome::kLate);
}

TEST_F(ReplicatedEngineTest, ALogThatIsAwayRefusesAndLosesNothing) {
  const auto engine = TakeOver("one");
  ASSERT_TRUE(Rank(*engine, 1).second.ok());
  log_.FailAppends({StatusCode::kUnavailable, "the database is away"});
  const auto refused = Reward(*engine, 1);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(engine->Stats().last_error.find("the database is away"), std::string::npos);
  log_.FailAppends({});
  EXPECT_EQ(Reward(*engine, 1).value().outcome, RewardOutcome::kAccepted);
  EXPECT_EQ(engine->Stats().last_error, "");
}

}  // namespace
}  // namespace codband::engine
