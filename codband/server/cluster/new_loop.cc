#include "codband/server/cluster/new_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "codband/base/version.h"
#include "codband/cluster/await.h"
#include "codband/cluster/frame.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"
#include "codband/server/cluster/cluster_admin.h"
#include "codband/server/cluster/log_calls.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

using cluster::Await;
using store::Partition;

// For good, as far as nodes are concerned: ten years.
constexpr std::int64_t kHoldMs = std::int64_t{10} * 365 * 24 * 3'600'000;

Status Explain(const Status& status) {
  if (status.ok()) return status;
  return {status.code(),
          fmt::format("{}; the loop is not complete, and no node serves it: run the command again, "
                      "or delete it ('DROP SCHEMA codband CASCADE')",
                      status.message())};
}

// Nothing was ever in it, or only what was being written when that was interrupted.
bool MayBeFilled(const cluster::PartitionMap& map, bool has_shared) {
  if (map.FindNode(NewLoop::kName) == nullptr) {
    return map.nodes.empty() && !has_shared &&
           std::ranges::all_of(map.partitions, [](const auto& each) { return each.epoch == 0; });
  }
  return std::ranges::all_of(map.partitions, [](const auto& each) {
    return each.epoch == 0 || each.owner == NewLoop::kName;
  });
}

}  // namespace

Result<std::vector<std::string>> ReadWholeCatalogue(store::PartitionLog& log) {
  std::vector<std::string> frames;
  while (true) {
    auto page = ReadSharedPage(log, frames.size() + 1);
    if (!page.ok()) return page.status();
    if (page.value().empty()) return frames;
    for (store::LogFrame& frame : page.value()) frames.push_back(std::move(frame.bytes));
  }
}

Status NewLoop::Take(Partition partitions) {
  const auto map = ReadMap(log_);
  if (!map.ok()) return map.status();
  if (map.value().partitions.size() != partitions) {
    return Status::InvalidArgument(fmt::format("the loop has {} partitions, expected {}",
                                               map.value().partitions.size(), partitions));
  }
  const auto shared = ReadWholeCatalogue(log_);
  if (!shared.ok()) return shared.status();
  if (!MayBeFilled(map.value(), !shared.value().empty())) {
    return Status::InvalidArgument(
        "the loop is not new: something is in it, or a node has joined it; expected a database "
        "without one ('DROP SCHEMA codband CASCADE' deletes a loop with all that was learned)");
  }
  return Hold(partitions);
}

Status NewLoop::Hold(Partition partitions) {
  const store::NodeState holder{.name = kName, .instance = kName, .version = std::string(kVersion)};
  CODBAND_RETURN_IF_ERROR(
      Await<Status>([&](auto done) { log_.KeepNode(holder, kHoldMs, std::move(done)); }));
  for (Partition partition = 0; partition < partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(
        Await<Status>([&](auto done) { log_.Want(partition, kName, std::move(done)); }));
  }
  for (Partition partition = 0; partition < partitions; ++partition) {
    const auto taken = Await<Result<store::PartitionState>>(
        [&](auto done) { log_.Acquire(partition, kName, kLeaseMs, std::move(done)); });
    if (taken.status().code() == StatusCode::kConflict) {
      return Status(StatusCode::kUnavailable,
                    fmt::format("another import or restore writes into this loop, or one was "
                                "interrupted a moment ago: try again in {} s",
                                kLeaseMs / 1000));
    }
    if (!taken.ok()) return Explain(taken.status());
    claims_.push_back(taken.value().claim());
    last_.push_back(taken.value().last_sequence);
  }
  return {};
}

Status NewLoop::PutShared(const std::vector<std::string>& frames, std::string_view pool) {
  const auto there = ReadWholeCatalogue(log_);
  if (!there.ok()) return Explain(there.status());
  const std::vector<std::string>& before = there.value();
  if (before.size() > frames.size() || !std::equal(before.begin(), before.end(), frames.begin())) {
    return Status::InvalidArgument(
        "what was written into the loop when that was interrupted is something else: delete it "
        "('DROP SCHEMA codband CASCADE') and try again");
  }
  for (std::size_t i = before.size(); i < frames.size(); ++i) {
    const Status appended =
        Await<Status>([&](auto done) { log_.AppendShared(i + 1, frames[i], std::move(done)); });
    if (!appended.ok()) return Explain(appended);
  }
  if (pool.empty()) return {};
  // A merger goes on with it. Versions of new owners are higher.
  const store::Claim& merger = claims_[PoolKeeper::kMerger];
  return Explain(Await<Status>([&](auto done) {
    log_.PutBlob(merger,
                 {.name = PoolKeeper::PoolName(PoolKeeper::kMerger), .version = merger.epoch},
                 std::string(pool), std::move(done));
  }));
}

Status NewLoop::Fill(Partition partition, const std::filesystem::path& data) {
  const auto store = store::OpenRocksDbStore(data, {.create = false, .read_only = true});
  if (!store.ok()) return Explain(store.status());
  auto checkpoint = cluster::ReadCheckpoint(*store.value());
  if (!checkpoint.ok()) return Explain(checkpoint.status());
  const store::Claim claim = claims_[partition];
  const std::uint64_t sequence = ++last_[partition];
  const Status appended = Await<Status>([&](auto done) {
    log_.Append(claim, sequence, cluster::EncodeFrame(store::StoreBatch()), std::move(done));
  });
  if (!appended.ok()) return Explain(appended);
  checkpoint.value().position = {.sequence = sequence, .epoch = claim.epoch};
  std::promise<Status> stored;
  cluster::StoreCheckpoint(log_, claim, std::move(checkpoint).value(),
                           [&](Status status) { stored.set_value(std::move(status)); });
  if (const Status status = stored.get_future().get(); !status.ok()) return Explain(status);
  const auto over = Await<Result<std::vector<store::Claim>>>(
      [&](auto done) { log_.Renew(claims_, kLeaseMs, std::move(done)); });
  return Explain(over.status());
}

// With the first step it is complete. If the others fail nodes take the partitions when the leases
// are over.
Status NewLoop::LetGo() {
  const Status gone =
      Await<Status>([&](auto done) { log_.RemoveNode(kName, kName, std::move(done)); });
  if (!gone.ok()) return Explain(gone);
  for (const store::Claim& claim : claims_) {
    for (const Status& status :
         {Await<Status>([&](auto done) { log_.Want(claim.partition, "", std::move(done)); }),
          Await<Status>([&](auto done) { log_.Release(claim, std::move(done)); })}) {
      if (!status.ok() && status.code() != StatusCode::kUnavailable) return status;
    }
  }
  return {};
}

}  // namespace codband::server
