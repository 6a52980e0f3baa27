#include "codband/engine/follower.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "codband/engine/local_engine.h"

namespace codband::engine {
namespace {

constexpr std::chrono::milliseconds kAwaitPause(1);

}  // namespace

Follower::Follower(std::unique_ptr<LocalEngine> engine)
    : engine_(std::move(engine)), given_(engine_->learner().applied_sequence()) {}

Follower::~Follower() = default;

Result<std::unique_ptr<Follower>> Follower::Open(std::unique_ptr<store::Store> store,
                                                 const EngineOptions& options) {
  std::string identity;
  CODBAND_RETURN_IF_ERROR(store->Get(store::Table::kMeta, Identity::kKey, identity));
  auto engine = LocalEngine::Make(std::move(store), options);
  if (!engine.ok()) return engine.status();
  CODBAND_RETURN_IF_ERROR(engine.value()->LoadLearned());
  CODBAND_RETURN_IF_ERROR(engine.value()->StartLearning());
  return std::unique_ptr<Follower>(new Follower(std::move(engine).value()));
}

Status Follower::Learn(const store::StoreBatch& changes) {
  std::vector<Learner::Entry> entries;
  for (const store::StoreBatch::Entry& change : changes.entries()) {
    // What the other one leaves out for good was perhaps learned here, or the other way round.
    if (change.table == store::Table::kMeta && IsQuarantineKey(change.key)) {
      return {StatusCode::kUnavailable, "an entry of the log was put into quarantine"};
    }
    if (change.table != store::Table::kLog || change.kind != store::StoreBatch::Kind::kPut) {
      continue;
    }
    const auto sequence = ReadNumberKey(change.key);
    if (!sequence.ok()) return sequence.status();
    auto record = LogRecord::Decode(change.value);
    if (!record.ok()) return record.status();
    if (sequence.value() != given_ + entries.size() + 1) {
      return Status::Corruption(
          fmt::format("log entry {} came after {}", sequence.value(), given_ + entries.size()));
    }
    entries.push_back({.sequence = sequence.value(), .record = std::move(record).value()});
  }
  given_ += entries.size();
  if (!entries.empty()) engine_->learner().Submit(std::move(entries));
  return {};
}

Status Follower::Await() const {
  const Learner& learner = engine_->learner();
  while (learner.applied_sequence() < given_) {
    const std::string problem = learner.last_error();
    if (!problem.empty()) return {StatusCode::kUnavailable, problem};
    std::this_thread::sleep_for(kAwaitPause);
  }
  return {};
}

std::uint64_t Follower::erased() const { return engine_->ErasedSequence(); }

Result<std::unique_ptr<Engine>> Follower::Serve(
    std::function<void(const FinishedDecision&)> on_finished) {
  CODBAND_RETURN_IF_ERROR(Await());
  CODBAND_RETURN_IF_ERROR(engine_->Serve(std::move(on_finished)));
  return std::unique_ptr<Engine>(std::move(engine_));
}

}  // namespace codband::engine
