#include "codband/server/cluster/standby.h"

#include <utility>

#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"

namespace codband::server {
namespace {

constexpr std::size_t kFramesAtOnce = 256;

Status Stopped() { return {StatusCode::kUnavailable, "the partition is not followed any more"}; }

}  // namespace

// The copy alone, which may be made anew.
class Standby::Copy final : public cluster::Replica {
 public:
  Copy(cluster::StoreReplica& replica, const std::atomic<bool>& stop)
      : replica_(replica), stop_(stop) {}

  cluster::Position position() const override { return replica_.position(); }
  Status Clear() override { return replica_.Clear(); }
  Status LoadPart(std::string_view part) override {
    return stop_ ? Stopped() : replica_.LoadPart(part);
  }
  Status FinishLoad(const cluster::Position& position) override {
    return replica_.FinishLoad(position);
  }
  Status Apply(const store::LogFrame& frame) override {
    return stop_ ? Stopped() : replica_.Apply(frame);
  }

 private:
  cluster::StoreReplica& replica_;
  const std::atomic<bool>& stop_;
};

// The copy and the engine that learns along.
class Standby::Learning final : public cluster::Replica {
 public:
  Learning(cluster::ReplicatedStore& store, engine::Follower& follower,
           const std::atomic<bool>& stop)
      : store_(store), follower_(follower), stop_(stop) {}

  cluster::Position position() const override { return store_.position(); }
  Status Clear() override { return {StatusCode::kCheckFailed, "an engine is on the copy"}; }
  Status LoadPart(std::string_view) override { return Clear(); }
  Status FinishLoad(const cluster::Position&) override { return Clear(); }
  Status Apply(const store::LogFrame& frame) override {
    if (stop_) return Stopped();
    const auto changes = store_.Follow(frame);
    Status status = changes.ok() ? follower_.Learn(changes.value()) : changes.status();
    // What waits to be learned is in memory.
    if (status.ok() && ++frames_ % kFramesAtOnce == 0) status = follower_.Await();
    failed_ |= !status.ok();
    return status;
  }
  // Copy and engine are not at the same frame any more.
  bool failed() const { return failed_; }

 private:
  cluster::ReplicatedStore& store_;
  engine::Follower& follower_;
  const std::atomic<bool>& stop_;
  std::size_t frames_ = 0;
  bool failed_ = false;
};

Standby::Standby(store::PartitionLog& log, Options options)
    : log_(log), options_(std::move(options)) {}

void Standby::End() {
  reached_ = 0;
  store_ = nullptr;
  follower_.reset();
}

// The copy catches up, and an engine loads what it has.
Status Standby::Begin(std::uint64_t last) {
  auto replica = cluster::StoreReplica::Open(options_.directory, options_.store);
  if (!replica.ok()) return replica.status();
  Copy copy(*replica.value(), stop_);
  CODBAND_RETURN_IF_ERROR(cluster::CatchUpAndWait(log_, options_.partition, copy, last));
  const cluster::Position position = copy.position();
  auto store = std::make_unique<cluster::ReplicatedStore>(replica.value()->Take(), log_, position);
  cluster::ReplicatedStore* const follows = store.get();
  auto follower = engine::Follower::Open(std::move(store), options_.engine);
  if (!follower.ok()) return follower.status();
  follower_ = std::move(follower).value();
  store_ = follows;
  return {};
}

Status Standby::Follow(std::uint64_t last) {
  if (follower_ == nullptr) CODBAND_RETURN_IF_ERROR(Begin(last));
  Learning learning(*store_, *follower_, stop_);
  Status status = cluster::FollowLogAndWait(log_, options_.partition, learning, last);
  // A log that cannot be read now can be read later on from there.
  bool ends = learning.failed() || (!status.ok() && status.code() != StatusCode::kUnavailable);
  if (status.ok()) {
    status = follower_->Await();
    ends = !status.ok();
  }
  if (ends) {
    End();
  } else {
    reached_ = store_->position().sequence;
  }
  return status;
}

Result<std::unique_ptr<engine::Engine>> Standby::Serve(
    const store::PartitionState& state, cluster::ReplicatedStore::OnGivenUp on_given_up,
    const Owned& owned, std::function<void(const engine::FinishedDecision&)> on_finished) {
  if (follower_ == nullptr) return Status(StatusCode::kUnavailable, "it does not follow yet");
  CODBAND_RETURN_IF_ERROR(Follow(state.last_sequence));
  store_->Own(state.claim(), std::move(on_given_up));
  owned(*store_);
  return follower_->Serve(std::move(on_finished));
}

}  // namespace codband::server
