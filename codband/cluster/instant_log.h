#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/timers.h"
#include "codband/cluster/replica.h"
#include "codband/store/partition_log.h"
#include "codband/store/simulated_record.h"

namespace codband::cluster {

// A record in memory for tests with threads, and a log of it that answers before the call returns;
// appends fail or wait where a test wants it. Thread-safe.
class InstantLog final : public store::PartitionLog {
 private:
  template <typename Function>
  auto Do(const Function& function) {
    const std::lock_guard lock(mutex_);
    return function();
  }

 public:
  using Claim = store::Claim;
  using Partition = store::Partition;

  explicit InstantLog(Partition partitions) : record_(partitions, time_) {}

  // Appends are answered with this, and do not happen, until it is ok again.
  void FailAppends(Status status) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(status);
  }
  // The same for appends to the shared log.
  void FailShared(Status status) {
    const std::lock_guard lock(mutex_);
    shared_failure_ = std::move(status);
  }
  // Appends get no answer from now on, and do not happen.
  void HoldAppends() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  void AwaitHeldAppend() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !held_.empty(); });
  }
  // Signs of life of nodes and claims get no answer, as in an outage, until they are let go.
  void HoldSigns() {
    const std::lock_guard lock(mutex_);
    hold_signs_ = true;
  }
  void LetSignsGo() {
    std::vector<std::function<void()>> held;
    {
      const std::lock_guard lock(mutex_);
      hold_signs_ = false;
      held.swap(held_signs_);
    }
    for (const auto& sign : held) sign();
  }
  std::size_t held_signs() const {
    const std::lock_guard lock(mutex_);
    return held_signs_.size();
  }
  // That were answered.
  std::size_t signs() const {
    const std::lock_guard lock(mutex_);
    return signs_;
  }
  // Every lease is over.
  void EndLeases() {
    const std::lock_guard lock(mutex_);
    record_.JumpClock(1'000'000'000);
  }
  std::vector<store::LogFrame> History(Partition partition) const {
    const std::lock_guard lock(mutex_);
    return record_.History(partition);
  }
  store::PartitionState State(Partition partition) const {
    const std::lock_guard lock(mutex_);
    return record_.ListPartitions()[partition];
  }

  void Acquire(Partition partition, std::string node, std::int64_t lease_ms,
               Done<Result<store::PartitionState>> done) override {
    done(Do([&] { return record_.Acquire(partition, node, lease_ms); }));
  }
  void Renew(std::vector<Claim> claims, std::int64_t lease_ms,
             Done<Result<std::vector<Claim>>> done) override {
    Sign([this, claims = std::move(claims), lease_ms, done = std::move(done)] {
      done(Do([&] { return record_.Renew(claims, lease_ms); }));
    });
  }
  void Release(Claim claim, Done<Status> done) override {
    done(Do([&] { return record_.Release(claim); }));
  }
  void Append(Claim claim, std::uint64_t sequence, std::string frame, Done<Status> done) override {
    const auto status = Do([&]() -> std::optional<Status> {
      if (hold_) {
        held_.push_back(done);
        changed_.notify_all();
        return std::nullopt;
      }
      return failure_.ok() ? record_.Append(claim, 0, sequence, frame) : failure_;
    });
    if (status) done(*status);
  }
  void Read(Partition partition, std::uint64_t from, std::size_t most_bytes,
            Done<Result<std::vector<store::LogFrame>>> done) override {
    done(Do([&] { return record_.Read(partition, from, most_bytes); }));
  }
  void Truncate(Claim claim, std::uint64_t below, Done<Status> done) override {
    done(Do([&] { return record_.Truncate(claim, below); }));
  }
  void PutBlob(Claim claim, store::BlobId id, std::string bytes, Done<Status> done) override {
    done(Do([&] { return record_.PutBlob(claim, id, bytes); }));
  }
  void GetBlob(Partition partition, store::BlobId id, Done<Result<std::string>> done) override {
    done(Do([&] { return record_.GetBlob(partition, id); }));
  }
  void FindBlob(Partition partition, std::string name, Done<Result<std::uint64_t>> done) override {
    done(Do([&] { return record_.FindBlob(partition, name); }));
  }
  void ListBlobs(Partition partition, Done<Result<std::vector<store::BlobPart>>> done) override {
    done(Do([&] { return record_.ListBlobs(partition); }));
  }
  void DeleteBlobs(Claim claim, std::string name, std::uint64_t below, Done<Status> done) override {
    done(Do([&] { return record_.DeleteBlobs(claim, name, below); }));
  }
  void AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) override {
    done(Do([&] {
      return shared_failure_.ok() ? record_.AppendShared(sequence, frame) : shared_failure_;
    }));
  }
  void ReadShared(std::uint64_t from, std::size_t most_bytes,
                  Done<Result<std::vector<store::LogFrame>>> done) override {
    done(Do([&] { return record_.ReadShared(from, most_bytes); }));
  }
  void Want(Partition partition, std::string node, Done<Status> done) override {
    done(Do([&] { return record_.Want(partition, node); }));
  }
  void SetDraining(std::string node, bool draining, Done<Status> done) override {
    done(Do([&] { return record_.SetDraining(node, draining); }));
  }
  void KeepNode(store::NodeState node, std::int64_t lease_ms, Done<Status> done) override {
    Sign([this, node = std::move(node), lease_ms, done = std::move(done)] {
      done(Do([&] { return record_.KeepNode(node, lease_ms); }));
    });
  }
  void RemoveNode(std::string name, std::string instance, Done<Status> done) override {
    done(Do([&] { return record_.RemoveNode(name, instance); }));
  }
  void ListNodes(Done<Result<std::vector<store::NodeState>>> done) override {
    done(Do([&] { return record_.ListNodes(); }));
  }
  void ListPartitions(Done<Result<std::vector<store::PartitionState>>> done) override {
    done(Do([&] { return record_.ListPartitions(); }));
  }
  void Watch(std::function<void()>) override {}

 private:
  void Sign(std::function<void()> sign) {
    {
      const std::lock_guard lock(mutex_);
      if (hold_signs_) return held_signs_.push_back(std::move(sign));
      ++signs_;
    }
    sign();
  }

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  VirtualTime time_;
  store::SimulatedRecord record_;
  Status failure_;
  Status shared_failure_;
  bool hold_ = false;
  std::vector<Done<Status>> held_;
  bool hold_signs_ = false;
  std::size_t signs_ = 0;
  std::vector<std::function<void()>> held_signs_;
};

// Runs it at once, later: in the order in which they were given, not within one another.
class InstantPost {
 public:
  void operator()(std::function<void()> task) {
    tasks_->push_back(std::move(task));
    if (tasks_->size() > 1) return;
    while (!tasks_->empty()) {
      tasks_->front()();
      tasks_->erase(tasks_->begin());
    }
  }

 private:
  std::shared_ptr<std::vector<std::function<void()>>> tasks_ =
      std::make_shared<std::vector<std::function<void()>>>();
};

// Brings the replica up to the end of the log.
inline Status CatchUpNow(InstantLog& log, store::Partition partition, Replica& replica) {
  std::optional<Status> answer;
  CatchUp(log, partition, replica, log.State(partition).last_sequence, InstantPost(),
          [&](const Status& status) { answer = status; });
  return answer ? *answer : Status(StatusCode::kCheckFailed, "there was no answer");
}

}  // namespace codband::cluster
