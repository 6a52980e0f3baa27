#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codband/engine/engine_testing.h"
#include "codband/engine/fake_store.h"
#include "codband/engine/learner.h"
#include "codband/policy/registry.h"

namespace codband::engine {

inline constexpr std::size_t kLearnerDim = 2;
inline constexpr const char* kLearnerPolicy = "codband";

inline std::string UserName(std::size_t user) { return "user" + std::to_string(user); }

inline std::string StateOf(const Policy& policy) {
  ByteWriter out;
  policy.SaveState(out);
  return out.Take();
}

// A log, and what a policy that learns it by itself knows after each entry.
struct Reference {
  std::vector<LogRecord> log;
  std::vector<std::string> states;  // states[n]: after n entries
};

inline Reference MakeReference(std::size_t entries, std::size_t users, bool keep_states = true) {
  const std::vector<double> features = {1, 0, 0, 1};
  const std::unique_ptr<Policy> policy = MakePolicy(kLearnerPolicy, {.dim = kLearnerDim}).value();
  Reference reference;
  if (keep_states) reference.states.push_back(StateOf(*policy));
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string user = UserName(i % users);
    const EventKey key{.seed = EngineOptions().seed, .event = i};
    Decision decision =
        policy->Choose(HashUser(user), {.features = features, .dim = kLearnerDim}, key);
    decision.propensity = 0.5;  // a record must have one
    const double reward = (decision.arm == i % users % 2) ? 1 : 0.25;
    policy->Learn(decision, reward, key);
    reference.log.push_back({.time_ms = static_cast<std::int64_t>(i),
                             .user = user,
                             .event = i,
                             .reward = reward,
                             .decision = decision});
    if (keep_states) reference.states.push_back(StateOf(*policy));
  }
  if (!keep_states) reference.states.push_back(StateOf(*policy));
  return reference;
}

class LearnerTest : public testing::Test {
 protected:
  LearnerTest() {
    options_.policy = kLearnerPolicy;
    options_.now_ms = [] { return std::int64_t{0}; };
    options_.checkpoint_interval_ms = 1'000'000'000;  // only when a test asks
  }

  Status TryOpen() {
    learner_.reset();
    auto learner = Learner::Open(store_, options_, kLearnerDim);
    if (!learner.ok()) return learner.status();
    learner_ = std::move(learner).value();
    return {};
  }
  void Open() {
    const Status status = TryOpen();
    ASSERT_TRUE(status.ok()) << status.ToString();
    learner_->Start();
  }
  // As if the process were killed and started again: memory is lost, no last checkpoint is made.
  void Crash() {
    FakeStore before;
    store_.CopyTablesTo(before);
    learner_.reset();
    before.CopyTablesTo(store_);
    Open();
  }

  void PutIntoLog(const LogRecord& record) {
    store_.Put(store::Table::kLog, NumberKey(++last_sequence_), record.Encode());
  }
  // What the committer does: into the log, then to the learner. Returns what `done` is told.
  Status Learn(const LogRecord& record) {
    PutIntoLog(record);
    return Wait<Status>([&](auto done) {
      std::vector<Learner::Entry> entries;
      entries.push_back({.sequence = last_sequence_, .record = record, .done = std::move(done)});
      learner_->Submit(std::move(entries));
    });
  }
  Status Forget(const std::string& user) {
    return Learn({.kind = LogRecord::Kind::kForget, .user = user});
  }

  // The same log without paging has the same records. Afterwards there is another learner.
  void ExpectTheRecordsOfALearnerWithoutPaging(const Reference& reference) {
    const FakeStore::Content users = store_.content(store::Table::kUsers);
    options_.users_in_memory = EngineOptions().users_in_memory;
    options_.user_memory_bytes = EngineOptions().user_memory_bytes;
    learner_.reset();
    FakeStore().CopyTablesTo(store_);
    last_sequence_ = 0;
    for (const LogRecord& record : reference.log) PutIntoLog(record);
    Open();
    ASSERT_TRUE(learner_->Checkpoint().ok());
    EXPECT_EQ(store_.content(store::Table::kUsers), users);
  }

  std::string State() const {
    return learner_->Read([](const Learned& learned) { return StateOf(*learned.policy); });
  }
  std::uint64_t Observations(const std::string& user) const {
    return learner_->Read([&](const Learned& learned) {
      std::optional<Person> scratch;
      const Person* person = learned.people.Peek(HashUser(user), scratch);
      return person == nullptr ? std::uint64_t{0} : person->observations;
    });
  }

  FakeStore store_;
  EngineOptions options_;
  std::uint64_t last_sequence_ = 0;
  std::unique_ptr<Learner> learner_;
};

}  // namespace codband::engine
