#include "codband/cluster/sharded_log.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace codband::cluster {
namespace {

enum class Needed { kAny, kAll };

// Puts the answers of several logs together, in whatever order they come.
template <typename T>
class Gathered {
 public:
  Gathered(std::size_t count, Needed needed, store::PartitionLog::Done<Result<std::vector<T>>> done)
      : left_(count), needed_(needed), done_(std::move(done)) {}

  void Add(Result<std::vector<T>> part) {
    {
      const std::lock_guard lock(mutex_);
      if (part.ok()) {
        std::ranges::move(part.value(), std::back_inserter(all_));
        any_ = true;
      } else {
        failure_ = part.status();
      }
      if (--left_ > 0) return;
    }
    if (!failure_.ok() && (needed_ == Needed::kAll || !any_)) return done_(failure_);
    std::ranges::sort(all_, {}, &T::partition);
    done_(std::move(all_));
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::size_t left_;
  const Needed needed_;
  bool any_ = false;
  std::vector<T> all_;
  Status failure_;
  const store::PartitionLog::Done<Result<std::vector<T>>> done_;
};

class ShardedLog final : public store::PartitionLog {
 public:
  explicit ShardedLog(std::vector<std::unique_ptr<store::PartitionLog>> logs)
      : logs_(std::move(logs)) {}

  void Acquire(store::Partition partition, std::string node, std::int64_t lease_ms,
               Done<Result<store::PartitionState>> done) override {
    Home(partition).Acquire(partition, std::move(node), lease_ms, std::move(done));
  }

  // A log that cannot be reached says nothing of its claims: they are not over.
  void Renew(std::vector<store::Claim> claims, std::int64_t lease_ms,
             Done<Result<std::vector<store::Claim>>> done) override {
    const auto all =
        std::make_shared<Gathered<store::Claim>>(logs_.size(), Needed::kAny, std::move(done));
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      std::vector<store::Claim> part;
      std::ranges::copy_if(claims, std::back_inserter(part), [&](const store::Claim& claim) {
        return claim.partition % logs_.size() == i;
      });
      logs_[i]->Renew(std::move(part), lease_ms,
                      [all](Result<std::vector<store::Claim>> over) { all->Add(std::move(over)); });
    }
  }

  void Release(store::Claim claim, Done<Status> done) override {
    Home(claim.partition).Release(claim, std::move(done));
  }

  void Append(store::Claim claim, std::uint64_t sequence, std::string frame,
              Done<Status> done) override {
    Home(claim.partition).Append(claim, sequence, std::move(frame), std::move(done));
  }

  void Read(store::Partition partition, std::uint64_t from, std::size_t most_bytes,
            Done<Result<std::vector<store::LogFrame>>> done) override {
    Home(partition).Read(partition, from, most_bytes, std::move(done));
  }

  void Truncate(store::Claim claim, std::uint64_t below, Done<Status> done) override {
    Home(claim.partition).Truncate(claim, below, std::move(done));
  }

  void PutBlob(store::Claim claim, store::BlobId id, std::string bytes,
               Done<Status> done) override {
    Home(claim.partition).PutBlob(claim, std::move(id), std::move(bytes), std::move(done));
  }

  void GetBlob(store::Partition partition, store::BlobId id,
               Done<Result<std::string>> done) override {
    Home(partition).GetBlob(partition, std::move(id), std::move(done));
  }

  void FindBlob(store::Partition partition, std::string name,
                Done<Result<std::uint64_t>> done) override {
    Home(partition).FindBlob(partition, std::move(name), std::move(done));
  }

  void ListBlobs(store::Partition partition,
                 Done<Result<std::vector<store::BlobPart>>> done) override {
    Home(partition).ListBlobs(partition, std::move(done));
  }

  void DeleteBlobs(store::Claim claim, std::string name, std::uint64_t below,
                   Done<Status> done) override {
    Home(claim.partition).DeleteBlobs(claim, std::move(name), below, std::move(done));
  }

  void AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) override {
    logs_[0]->AppendShared(sequence, std::move(frame), std::move(done));
  }

  void ReadShared(std::uint64_t from, std::size_t most_bytes,
                  Done<Result<std::vector<store::LogFrame>>> done) override {
    logs_[0]->ReadShared(from, most_bytes, std::move(done));
  }

  void Want(store::Partition partition, std::string node, Done<Status> done) override {
    Home(partition).Want(partition, std::move(node), std::move(done));
  }

  void SetDraining(std::string node, bool draining, Done<Status> done) override {
    logs_[0]->SetDraining(std::move(node), draining, std::move(done));
  }

  void KeepNode(store::NodeState node, std::int64_t lease_ms, Done<Status> done) override {
    logs_[0]->KeepNode(std::move(node), lease_ms, std::move(done));
  }

  void RemoveNode(std::string name, std::string instance, Done<Status> done) override {
    logs_[0]->RemoveNode(std::move(name), std::move(instance), std::move(done));
  }

  void ListNodes(Done<Result<std::vector<store::NodeState>>> done) override {
    logs_[0]->ListNodes(std::move(done));
  }

  void ListPartitions(Done<Result<std::vector<store::PartitionState>>> done) override {
    const auto all = std::make_shared<Gathered<store::PartitionState>>(logs_.size(), Needed::kAll,
                                                                       std::move(done));
    for (const auto& log : logs_) {
      log->ListPartitions([all](Result<std::vector<store::PartitionState>> states) {
        all->Add(std::move(states));
      });
    }
  }

  void Watch(std::function<void()> changed) override {
    for (const auto& log : logs_) log->Watch(changed);
  }
  void WatchBlobs(std::function<void()> changed) override {
    for (const auto& log : logs_) log->WatchBlobs(changed);
  }

 private:
  store::PartitionLog& Home(store::Partition partition) { return *logs_[partition % logs_.size()]; }

  std::vector<std::unique_ptr<store::PartitionLog>> logs_;
};

}  // namespace

std::unique_ptr<store::PartitionLog> ShardLogs(
    std::vector<std::unique_ptr<store::PartitionLog>> logs) {
  return std::make_unique<ShardedLog>(std::move(logs));
}

}  // namespace codband::cluster
