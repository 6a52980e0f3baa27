#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/cluster/replica.h"
#include "codband/store/rocksdb_store.h"
#include "codband/store/store.h"

namespace codband::cluster {

// A local store that follows a partition's log: a cache that can be made again. Its writes are not
// synced: after a loss of power it stands at an earlier frame. Not thread-safe.
class StoreReplica final : public Replica {
 public:
  // Opens the tables in `directory`, or makes them. One whose bytes are damaged begins anew.
  static Result<std::unique_ptr<StoreReplica>> Open(const std::filesystem::path& directory,
                                                    const store::RocksDbOptions& options = {});

  Position position() const override { return position_; }
  Status Clear() override;
  Status LoadPart(std::string_view part) override;
  Status FinishLoad(const Position& position) override;
  Status Apply(const store::LogFrame& frame) override;

  // The store, once it has caught up. Nothing else may be called after that.
  std::unique_ptr<store::Store> Take() { return std::move(store_); }

 private:
  StoreReplica(std::filesystem::path directory, const store::RocksDbOptions& options)
      : directory_(std::move(directory)), options_(options) {}
  Status OpenStore();

  const std::filesystem::path directory_;
  const store::RocksDbOptions options_;
  std::unique_ptr<store::Store> store_;
  Position position_;
};

// What makes a replica of a store's position. `store` does not change meanwhile: it is a backup.
Result<Checkpoint> ReadCheckpoint(const store::Store& store);

}  // namespace codband::cluster
