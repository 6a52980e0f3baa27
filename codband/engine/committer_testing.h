#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "codband/engine/committer.h"
#include "codband/engine/engine_testing.h"
#include "codband/engine/fake_store.h"

namespace codband::engine {

inline constexpr std::int64_t kWaitMs = 100;  // the committer then looks at deadlines every 10 ms

// What happens, in order, from any thread.
class Journal {
 public:
  void Add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(what);
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// A committer on a store in memory, with a clock that the test sets. Log entries are acknowledged
// at once, as by a learner that takes no time.
class CommitterBox {
 public:
  CommitterBox() {
    options_.reward_wait_ms = kWaitMs;
    options_.default_reward = 0.5;
    options_.now_ms = [this] { return now_ms_.load(); };
    options_.steady_ms = options_.now_ms;
    options_.boot_id = "test";
    store_.on_written = [this] { journal_.Add("written"); };
  }
  ~CommitterBox() { committer_.reset(); }  // before what it uses

  FakeStore& store() { return store_; }
  Committer& committer() { return *committer_; }
  EngineOptions& options() { return options_; }
  Journal& journal() { return journal_; }
  std::int64_t now_ms() const { return now_ms_; }
  void Advance(std::int64_t ms) { now_ms_ += ms; }
  std::size_t items() const {
    return catalogue_.Read([](const Catalogue& catalogue) { return catalogue.size(); });
  }

  // From the next Open() on every name has a column.
  void UseColumns() {
    columns_ = true;
    catalogue_.Write([](Catalogue& catalogue) { catalogue = Catalogue(0); });
  }

  Status TryOpen() {
    committer_.reset();
    auto committer = Committer::Open(
        store_, catalogue_, options_, last_sequence_,
        {.learn = [this](std::vector<Learner::Entry> entries) { Learn(std::move(entries)); },
         .finished =
             [this](const FinishedDecision& decision) {
               journal_.Add("finished " + decision.event_id);
             }},
        columns_ ? std::make_unique<ColumnClerk>(features::ColumnSpace(), options_.columns,
                                                 features::CrossingRules())
                 : nullptr);
    if (!committer.ok()) return committer.status();
    committer_ = std::move(committer).value();
    return {};
  }
  void Open() {
    const Status status = TryOpen();
    ASSERT_TRUE(status.ok()) << status.ToString();
    committer_->Start();
  }

  PendingDecision Pending(const std::string& user) const {
    PendingDecision pending{.time_ms = now_ms_,
                            .deadline_ms = now_ms_ + kWaitMs,
                            .user = user,
                            .made_ms = now_ms_,
                            .fingerprint = HashUser(user),
                            .action = "x"};
    pending.decision.user = HashUser(user);
    pending.decision.features = {1, 2};
    pending.decision.propensity = 1;  // a record must have one
    return pending;
  }
  void SubmitRank(const std::string& event, const PendingDecision& pending,
                  Engine::Done<Status> done, bool known_id = true) {
    committer_->Submit(Committer::RankCommand{.event_id = event,
                                              .user = HashUser(pending.user),
                                              .made_ms = pending.made_ms,
                                              .deadline_ms = pending.deadline_ms,
                                              .fingerprint = known_id ? pending.fingerprint : 0,
                                              .action = pending.action,
                                              .pending = pending.Encode(),
                                              .done = std::move(done)});
  }
  Status Rank(const std::string& event, const PendingDecision& pending, bool known_id = true) {
    return Wait<Status>([&](auto done) { SubmitRank(event, pending, std::move(done), known_id); });
  }
  Status Rank(const std::string& event, const std::string& user = "ann") {
    return Rank(event, Pending(user));
  }
  void SubmitReward(const std::string& event, double value,
                    Engine::Done<Result<RewardReply>> done) {
    committer_->Submit(
        Committer::RewardCommand{.event_id = event, .value = value, .done = std::move(done)});
  }
  Result<RewardReply> Reward(const std::string& event, double value = 1) {
    return Wait<Result<RewardReply>>(
        [&](auto done) { SubmitReward(event, value, std::move(done)); });
  }
  Status Activate(const std::string& event) {
    return Wait<Status>([&](auto done) {
      committer_->Submit(Committer::ActivateCommand{.event_id = event, .done = std::move(done)});
    });
  }
  Status PutItem(const std::string& id) {
    return Wait<Status>([&](auto done) {
      committer_->Submit(
          Committer::PutItemsCommand{.items = {MakeItem(id)}, .done = std::move(done)});
    });
  }
  static std::shared_ptr<const Item> MakeItem(const std::string& id) {
    return std::make_shared<const Item>(
        Item{.id = id, .features = {1, 0}, .named = {}, .tags = {}});
  }

  // Calls submit(), and has what it submits, `count` commands, committed as one group.
  void InOneGroup(std::size_t count, const std::function<void()>& submit) {
    store_.HoldWrites();
    std::promise<void> first;
    committer_->Submit(Committer::PutItemsCommand{
        .items = {MakeItem("first")}, .done = [&](const Status&) { first.set_value(); }});
    store_.AwaitHeldWrite();
    submit();
    EXPECT_EQ(committer_->queue_length(), count);
    store_.ReleaseWrites();
    first.get_future().get();
  }

  std::vector<LogRecord> learned() {
    const std::lock_guard lock(mutex_);
    return learned_;
  }
  // What the log in the store holds: user, then reward, by sequence.
  std::map<std::uint64_t, std::pair<std::string, double>> Log() const {
    std::map<std::uint64_t, std::pair<std::string, double>> log;
    for (const auto& [key, value] : store_.content(store::Table::kLog)) {
      const LogRecord record = LogRecord::Decode(value).value();
      log[ReadNumberKey(key).value()] = {record.user, record.reward};
    }
    return log;
  }

 private:
  void Learn(std::vector<Learner::Entry> entries) {
    for (Learner::Entry& entry : entries) {
      journal_.Add(fmt::format("learn {}", entry.sequence));
      {
        const std::lock_guard lock(mutex_);
        learned_.push_back(entry.record);
        last_sequence_ = entry.sequence;
      }
      if (entry.done) entry.done({});
    }
  }

  FakeStore store_;
  Journal journal_;
  std::atomic<std::int64_t> now_ms_{1'000'000};
  EngineOptions options_;
  LeftRight<Catalogue> catalogue_{Catalogue(2), Catalogue(2)};
  std::mutex mutex_;
  std::vector<LogRecord> learned_;
  std::uint64_t last_sequence_ = 0;
  bool columns_ = false;
  std::unique_ptr<Committer> committer_;
};

}  // namespace codband::engine
