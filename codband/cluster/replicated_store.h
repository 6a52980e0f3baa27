#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/cluster/replica.h"
#include "codband/store/partition_log.h"
#include "codband/store/store.h"

namespace codband::cluster {

// The store of a partition's owner. A write is a frame of the partition's log; once it is there it
// is written to the local store too, without a sync: what counts is the log. Reads are local.
//
// Bulk writes and Tidy are local alone: they make checkpoints of what the log says, and every copy
// of the partition makes its own.
//
// A write that fails has changed nothing, and the next one may succeed; unless the claim is over,
// or the local store could not follow the log. Then it is given up for good: every later write is
// refused, and the partition must be opened anew.
//
// Without a claim it follows the log of another owner: it writes the frames that it is given and
// refuses every other write but those that are local alone.
class ReplicatedStore final : public store::Store {
 public:
  // `fenced`: the claim is over. Called once, on the thread of a write.
  using OnGivenUp = std::function<void(bool fenced)>;

  // Follows the log; `local` stands at `position`. The log outlives it.
  ReplicatedStore(std::unique_ptr<store::Store> local, store::PartitionLog& log,
                  const Position& position);
  // Of an owner from the start.
  ReplicatedStore(std::unique_ptr<store::Store> local, store::PartitionLog& log, store::Claim claim,
                  const Position& position, OnGivenUp on_given_up)
      : ReplicatedStore(std::move(local), log, position) {
    Own(claim, std::move(on_given_up));
  }

  // Writes the next frame of another owner; returns what was written. One thread at a time.
  Result<store::StoreBatch> Follow(const store::LogFrame& frame);
  // Writes under this claim from now on. The store stands at the end of the log.
  void Own(const store::Claim& claim, OnGivenUp on_given_up);

  Status Write(const store::StoreBatch& batch, bool sync) override;
  Status Tidy(const store::StoreBatch& batch, bool sync) override;
  Status WriteBulk(store::StoreBatch batch) override;
  Status Get(store::Table table, std::string_view key, std::string& value) const override;
  Status Scan(store::Table table, std::string_view from, std::string_view to,
              const Visit& visit) const override;
  Status ScanPastDamage(store::Table table, const Visit& visit,
                        std::vector<Lost>& lost) const override;
  std::vector<std::string> Damage() const override { return local_->Damage(); }
  Status Backup(const std::filesystem::path& directory) override {
    return local_->Backup(directory);
  }
  Status Scrub(const Traces& traces) override { return local_->Scrub(traces); }
  Status Verify() const override { return local_->Verify(); }
  store::StoreStats Stats() const override { return local_->Stats(); }

  // Refuses every write from now on, and those that wait for the log: what becomes of them is not
  // known. From any thread.
  void GiveUp(const std::string& reason);
  Position position() const;

 private:
  // The answer to one append.
  struct Answer {
    bool came = false;
    Status status = {};
  };
  Status Append(std::string frame, std::unique_lock<std::mutex>& lock);
  Status Lose(std::string reason, bool fenced, std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<store::Store> local_;
  store::PartitionLog& log_;
  // Of the owner: set before its first write.
  store::Claim claim_;
  OnGivenUp on_given_up_;
  // Shared with the callbacks of appends, which may come after this store is gone.
  struct Shared {
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    bool owns = false;
    bool writing = false;
    std::string given_up = {};  // why; empty: it is not
    Position position = {};
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace codband::cluster
