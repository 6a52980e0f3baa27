// Many threads use the engine at once. Run it under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "codband/base/random.h"
#include "codband/engine/engine.h"
#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

constexpr int kVisitors = 3;
constexpr int kVisitsOfEach = 150;  // of each visitor
constexpr std::int64_t kShortWaitMs = 400;

std::vector<Item> TenItems() {
  std::vector<Item> items;
  for (int i = 0; i < 10; ++i) {
    const double x = i / 10.0;
    items.push_back({.id = "item" + std::to_string(i),
                     .features = {x, 1 - x, x * x},
                     .named = {},
                     .tags = {i % 2 == 0 ? "even" : "odd"}});
  }
  return items;
}

// What all threads have done together.
struct Ledger {
  std::mutex mutex;
  std::set<std::uint64_t> sequences;             // of the rewards that were accepted
  std::map<std::string, std::uint64_t> learned;  // by user: rewards and defaults, unless forgotten
  std::uint64_t forgets = 0;                     // asked for
  std::uint64_t accepted = 0;
};

// Ranks and rewards, one visit after another. There are three kinds of users: its own, whom no
// other thread uses; "all", whom every thread uses; "contested", whom every thread uses and
// forgets.
class Visitor {
 public:
  Visitor(EngineBox& box, int number, Ledger& ledger)
      : box_(box), name_("v" + std::to_string(number)), number_(number), ledger_(ledger) {}

  void Run() {
    for (visit_ = 0; visit_ < kVisitsOfEach; ++visit_) {
      box_.Advance(1);
      if (visit_ % 40 == 39) Forget(name_ + "-user" + std::to_string(visit_ / 40 % 5));
      if (visit_ % 25 == 24) Forget("contested");
      Visit();
    }
  }

 private:
  RankRequest Request(const std::string& user) {
    RankRequest request{.event_id = name_ + "-" + std::to_string(visit_), .user = user};
    if (visit_ % 3 == 0) {
      request.candidates = {{.id = "item1"}, {.id = "item4"}, {.id = "item9"}};
    } else if (visit_ % 3 == 1) {
      request.candidates = {{.id = "here", .features = {0.5, 0.25, visit_ / 150.0}},
                            {.id = "item2"}};
    } else {
      request.excluded = {"item3"};
      request.explain = visit_ % 2 == 0;
    }
    return request;
  }

  void Visit() {
    const std::string user = visit_ % 7 == 0   ? "all"
                             : visit_ % 7 == 1 ? "contested"
                                               : name_ + "-user" + std::to_string(visit_ % 5);
    const RankRequest request = Request(user);
    const auto reply = box_.Rank(request);
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    double sum = 0;
    for (const RankedItem& item : reply.value().ranking) sum += item.probability;
    EXPECT_NEAR(sum, 1, 1e-9);
    if (visit_ % 11 == 10) {  // no reward: the default is learned later
      const std::lock_guard lock(ledger_.mutex);
      if (user != "contested") ++ledger_.learned[user];
      return;
    }
    const double value = number_ % 2 == 0 ? 1 : 0;
    const auto reward = box_.Reward(request.event_id, value);
    ASSERT_TRUE(reward.ok()) << reward.status().ToString();
    const auto again = box_.Reward(request.event_id, value);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_NE(again.value().outcome, RewardOutcome::kAccepted);
    const std::lock_guard lock(ledger_.mutex);
    if (reward.value().outcome == RewardOutcome::kAccepted) {
      ++ledger_.accepted;
      EXPECT_TRUE(ledger_.sequences.insert(reward.value().sequence).second);
      EXPECT_LE(reward.value().sequence, box_->Stats().applied_sequence);
    } else if (user != "contested") {
      // The other threads advanced the clock beyond the wait: the default was learned instead.
      EXPECT_EQ(reward.value().outcome, RewardOutcome::kLate);
    }
    if (user != "contested") ++ledger_.learned[user];
  }

  void Forget(const std::string& user) {
    const Status status = box_.Forget(user);
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kNotFound) << status.ToString();
    const std::lock_guard lock(ledger_.mutex);
    ++ledger_.forgets;
    ledger_.learned.erase(user);
    box_.Advance(1);  // decisions from now on are later than this
  }

  EngineBox& box_;
  std::string name_;
  int number_;
  int visit_ = 0;
  Ledger& ledger_;
};

constexpr std::uint64_t kDeletions = 20;

// Deletes an item so many times.
void ChangeItems(EngineBox& box) {
  for (int i = 0; i < 60; ++i) {
    const double x = i / 60.0;
    const std::string id = "passing" + std::to_string(i % 4);
    ASSERT_TRUE(box.Put({{.id = id, .features = {x, x, x}, .named = {{"x", x}}, .tags = {}},
                         {.id = "item5", .features = {x, 0, 1}, .named = {}, .tags = {"new"}}})
                    .ok());
    EXPECT_EQ(box->GetItem("item5").value().features[2], 1);
    if (i % 3 == 2) {
      ASSERT_TRUE(box.Delete(id).ok());
    }
  }
}

void Look(EngineBox& box) {
  for (int i = 0; i < 40; ++i) {
    const auto user = box->GetUser("v" + std::to_string(i % kVisitors) + "-user2");
    EXPECT_TRUE(user.ok() || user.status().code() == StatusCode::kNotFound);
    for (const ModelReport& model : box->Models(3)) {
      EXPECT_LE(model.items.size(), 3U);
      const auto same = box->GetModel(model.id, 1);
      EXPECT_TRUE(same.ok() || same.status().code() == StatusCode::kNotFound);
    }
    const EngineStats stats = box->Stats();
    EXPECT_LE(stats.applied_sequence, stats.committed_sequence);
    EXPECT_EQ(stats.last_error, "");
    EXPECT_LE(box->RecentChanges(5).size(), 5U);
    std::set<std::string> names;
    const Status visited = box->VisitUsers([&](const UserReport& report) {
      EXPECT_TRUE(names.insert(report.user).second) << report.user;
      return true;
    });
    EXPECT_TRUE(visited.ok()) << visited.ToString();
  }
}

void Operate(EngineBox& box) {
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(box->Checkpoint().ok());
    if (i % 4 != 3) continue;
    const Status copied = box->Backup(box.directory() / ("backup" + std::to_string(i)));
    EXPECT_TRUE(copied.ok()) << copied.ToString();
  }
}

std::unique_ptr<Engine> OpenCopy(const EngineBox& box, const std::filesystem::path& directory,
                                 EngineOptions options) {
  auto store = store::OpenRocksDbStore(directory);
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  options.now_ms = [now_ms = box.now_ms()] { return now_ms; };
  options.steady_ms = options.now_ms;
  options.boot_id = "copy";
  auto engine = Engine::Open(std::move(store).value(), options);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  return std::move(engine).value();
}

TEST(EngineConcurrencyTest, EveryRewardCountsOnceWhateverElseGoesOn) {
  EngineBox box({.reward_wait_ms = kShortWaitMs, .default_reward = 0.5, .users_in_memory = 8});
  ASSERT_TRUE(box.Put(TenItems()).ok());
  Ledger ledger;
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < kVisitors; ++i) {
      threads.emplace_back([&, i] { Visitor(box, i, ledger).Run(); });
    }
    threads.emplace_back([&] { ChangeItems(box); });
    threads.emplace_back([&] { Look(box); });
    threads.emplace_back([&] { Operate(box); });
    for (std::thread& thread : threads) thread.join();
  }
  // Every wait ends.
  while (box->Stats().pending > 0) {
    box.Advance(kShortWaitMs + 1);
    std::this_thread::yield();
  }
  while (box->Stats().applied_sequence < box->Stats().committed_sequence) std::this_thread::yield();

  const EngineStats stats = box->Stats();
  EXPECT_GT(ledger.accepted, 300U);
  EXPECT_EQ(stats.rewards_accepted, ledger.accepted);
  // Each log entry is a reward, a default reward, or a user to forget.
  EXPECT_EQ(stats.committed_sequence,
            ledger.accepted + stats.rewards_defaulted + ledger.forgets + kDeletions);
  for (const auto& [user, learned] : ledger.learned) {
    EXPECT_EQ(box->GetUser(user).value().observations, learned) << user;
  }
  std::uint64_t people = 0;
  std::uint64_t observations = 0;
  ASSERT_TRUE(box->VisitUsers([&](const UserReport& report) {
                   ++people;
                   observations += report.observations;
                   return true;
                 })
                  .ok());
  EXPECT_EQ(people, stats.users);
  for (const ModelReport& model : box->Models(0)) observations -= model.observations;
  EXPECT_EQ(observations, 0U);
  const Status sound = box->Check();
  EXPECT_TRUE(sound.ok()) << sound.ToString();

  // A backup, opened from its last checkpoint and its log, has the same state.
  const std::filesystem::path copy = box.directory() / "last";
  ASSERT_TRUE(box->Backup(copy).ok());
  OpenCopy(box, copy, box.options()).reset();
  box.Close();
  EXPECT_TRUE(ReadStoredState(copy) == ReadStoredState(box.directory()));
  // Backups made meanwhile are consistent.
  for (const char* name : {"backup3", "backup7", "backup11"}) {
    const auto engine = OpenCopy(box, box.directory() / name, box.options());
    const Status whole = engine->Check();
    EXPECT_TRUE(whole.ok()) << name << ": " << whole.ToString();
  }
}

// Backpressure: many callers, a short queue.
TEST(EngineConcurrencyTest, ARefusedRequestChangesNothing) {
  EngineBox box({.max_queue = 2});
  ASSERT_TRUE(box.Put(TenItems()).ok());
  std::atomic<std::uint64_t> accepted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int visit = 0; visit < 100; ++visit) {
        const std::string event = std::to_string(i) + "-" + std::to_string(visit);
        const auto reply = box.Rank({.event_id = event, .user = "ann"});
        if (!reply.ok()) {
          EXPECT_EQ(reply.status().code(), StatusCode::kUnavailable);
          continue;
        }
        const auto reward = box.Reward(event, 1);
        if (reward.ok() && reward.value().outcome == RewardOutcome::kAccepted) ++accepted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(accepted, 0U);
  EXPECT_EQ(box->GetUser("ann").value().observations, accepted);
}

}  // namespace
}  // namespace codband::engine
