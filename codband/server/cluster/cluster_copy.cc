#include "codband/server/cluster/cluster_copy.h"

#include <fmt/format.h>

#include <future>
#include <system_error>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/cluster/await.h"
#include "codband/cluster/frame.h"
#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"
#include "codband/server/admin/findings.h"
#include "codband/server/cluster/cluster_admin.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/log_calls.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;
using cluster::Await;
using store::Partition;

constexpr std::uint32_t kLoopMagic = 0x706f6f6c;  // "loop"
constexpr std::uint32_t kLoopFormat = 1;
constexpr std::int64_t kLeaseMs = 600'000;
constexpr const char* kRestorer = "(restore)";

// A new directory that gets its name when it is complete.
Status MakeWhole(const fs::path& out, const std::function<Status(const fs::path&)>& fill) {
  std::error_code error;
  if (out.empty() || fs::exists(fs::symlink_status(out, error))) {
    return Status::InvalidArgument(
        fmt::format("'{}' exists or is no name, expected that of a new directory", out.string()));
  }
  fs::path partial = out;
  partial += ".partial";
  fs::remove_all(partial, error);
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(partial));
  CODBAND_RETURN_IF_ERROR(fill(partial));
  if (const auto closed = MakePrivate(partial); !closed.ok()) return closed.status();
  fs::rename(partial, out, error);
  if (error) {
    return Status::IoError(
        fmt::format("{}: cannot be renamed: {}", partial.string(), error.message()));
  }
  return SyncDirectory(fs::absolute(out, error).parent_path());
}

// The partition as of its last frame, as a data directory.
Status CopyPartition(store::PartitionLog& log, const store::PartitionState& state,
                     const fs::path& directory) {
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(directory));
  auto replica = cluster::StoreReplica::Open(directory);
  if (!replica.ok()) return replica.status();
  CODBAND_RETURN_IF_ERROR(
      cluster::CatchUpAndWait(log, state.partition, *replica.value(), state.last_sequence));
  const cluster::Position position = replica.value()->position();
  const auto store = replica.value()->Take();
  store::StoreBatch batch;
  cluster::PutPosition(position, batch);
  return store->Write(batch, true);  // with all before it
}

Result<std::vector<std::string>> ReadWholeCatalogue(store::PartitionLog& log) {
  std::vector<std::string> frames;
  while (true) {
    auto page = ReadSharedPage(log, frames.size() + 1);
    if (!page.ok()) return page.status();
    if (page.value().empty()) return frames;
    for (store::LogFrame& frame : page.value()) frames.push_back(std::move(frame.bytes));
  }
}

// Empty if there is none.
Result<std::string> ReadPool(store::PartitionLog& log) {
  const std::string name = PoolKeeper::PoolName(PoolKeeper::kMerger);
  while (true) {
    const auto version = FindVersion(log, PoolKeeper::kMerger, name);
    if (!version.ok()) return version.status();
    if (version.value() == 0) return std::string();
    auto bytes = GetBlob(log, PoolKeeper::kMerger, name, version.value());
    if (!WasReplaced(bytes.status())) return bytes;
  }
}

// What is written into a new loop. All partitions are held meanwhile, so that no node takes one.
class NewLoop {
 public:
  explicit NewLoop(store::PartitionLog& log) : log_(log) {}

  // kInvalidArgument: there is something in it.
  Status Take(Partition partitions) {
    const auto map = ReadMap(log_);
    if (!map.ok()) return map.status();
    if (map.value().partitions.size() != partitions) {
      return Status::InvalidArgument(fmt::format("the loop has {} partitions, expected {}",
                                                 map.value().partitions.size(), partitions));
    }
    const auto shared = ReadWholeCatalogue(log_);
    if (!shared.ok()) return shared.status();
    bool used = !map.value().nodes.empty() || !shared.value().empty();
    for (const store::PartitionState& state : map.value().partitions) used |= state.epoch > 0;
    if (used) {
      return Status::InvalidArgument(
          "the loop is not new: something is in it, or a node has joined it; expected a database "
          "without one ('DROP SCHEMA codband CASCADE' deletes a loop with all that was learned)");
    }
    for (Partition partition = 0; partition < partitions; ++partition) {
      const auto taken = Await<Result<store::PartitionState>>(
          [&](auto done) { log_.Acquire(partition, kRestorer, kLeaseMs, std::move(done)); });
      if (!taken.ok()) return Explain(taken.status());
      claims_.push_back(taken.value().claim());
    }
    return {};
  }

  // What is in the data directory becomes the partition's checkpoint.
  Status Fill(Partition partition, const fs::path& data) {
    const auto store = store::OpenRocksDbStore(data, {.create = false, .read_only = true});
    if (!store.ok()) return Explain(store.status());
    auto checkpoint = cluster::ReadCheckpoint(*store.value());
    if (!checkpoint.ok()) return Explain(checkpoint.status());
    const store::Claim claim = claims_[partition];
    const Status appended = Await<Status>([&](auto done) {
      log_.Append(claim, 1, cluster::EncodeFrame(store::StoreBatch()), std::move(done));
    });
    if (!appended.ok()) return Explain(appended);
    checkpoint.value().position = {.sequence = 1, .epoch = claim.epoch};
    std::promise<Status> stored;
    cluster::StoreCheckpoint(log_, claim, std::move(checkpoint).value(),
                             [&](Status status) { stored.set_value(std::move(status)); });
    if (const Status status = stored.get_future().get(); !status.ok()) return Explain(status);
    const auto over = Await<Result<std::vector<store::Claim>>>(
        [&](auto done) { log_.Renew(claims_, kLeaseMs, std::move(done)); });
    return over.ok() ? Status() : Explain(over.status());
  }

  Status PutShared(const LoopFile& loop) {
    for (std::size_t i = 0; i < loop.shared.size(); ++i) {
      const Status appended = Await<Status>(
          [&](auto done) { log_.AppendShared(i + 1, loop.shared[i], std::move(done)); });
      if (!appended.ok()) return Explain(appended);
    }
    if (loop.pool.empty()) return {};
    // A merger goes on with it. Versions of new owners are higher.
    const Status put = Await<Status>([&](auto done) {
      log_.PutBlob(claims_[PoolKeeper::kMerger],
                   {.name = PoolKeeper::PoolName(PoolKeeper::kMerger), .version = 1}, loop.pool,
                   std::move(done));
    });
    return put.ok() ? put : Explain(put);
  }

  Status LetGo() {
    for (const store::Claim& claim : claims_) {
      const Status released =
          Await<Status>([&](auto done) { log_.Release(claim, std::move(done)); });
      if (!released.ok()) return Explain(released);
    }
    return {};
  }

 private:
  static Status Explain(const Status& status) {
    return {status.code(),
            fmt::format("{}; the loop is not complete: delete it ('DROP SCHEMA codband CASCADE') "
                        "and try again",
                        status.message())};
  }

  store::PartitionLog& log_;
  std::vector<store::Claim> claims_;
};

Status CheckData(const fs::path& data) {
  if (store::IsRocksDbStoreInUse(data)) {
    return Status(
        StatusCode::kUnavailable,
        fmt::format("{} is in use by another process: stop the server first", data.string()));
  }
  const auto findings = ExamineData(data);
  if (!findings.ok()) return findings.status();
  return CheckSound(data, findings.value());
}

}  // namespace

std::string LoopFile::Encode() const {
  ByteWriter out;
  out.U32(kLoopMagic);
  out.U32(kLoopFormat);
  out.U32(partitions);
  out.U64(shared.size());
  for (const std::string& frame : shared) out.String(frame);
  out.String(pool);
  std::string bytes = out.Take();
  ByteWriter checksum;
  checksum.U32(Crc32(bytes));
  return bytes + checksum.Take();
}

Result<LoopFile> LoopFile::Decode(std::string_view bytes) {
  constexpr std::size_t kChecksumBytes = 4;
  const auto damaged = [](std::string_view why) {
    return Status::Corruption(fmt::format("the file '{}' of the backup {}", kName, why));
  };
  if (bytes.size() < 3 * kChecksumBytes) return damaged("is too short");
  ByteReader in(bytes.substr(0, bytes.size() - kChecksumBytes));
  if (in.U32("magic") != kLoopMagic) return damaged("is none");
  ByteReader checksum(bytes.substr(bytes.size() - kChecksumBytes));
  if (checksum.U32("checksum") != Crc32(bytes.substr(0, bytes.size() - kChecksumBytes))) {
    return damaged("is damaged");
  }
  if (const std::uint32_t version = in.U32("version"); version > kLoopFormat) {
    return Status::InvalidArgument(
        fmt::format("the backup has version {}, this program knows versions up to {}: use a newer "
                    "codband",
                    version, kLoopFormat));
  }
  LoopFile loop;
  loop.partitions = in.U32("partitions");
  for (std::size_t left = in.Count("number of frames", 8); left > 0 && in.ok(); --left) {
    loop.shared.push_back(in.String("frame"));
  }
  loop.pool = in.String("pool");
  in.ExpectEnd();
  if (!in.ok()) return damaged("cannot be read: " + in.status().message());
  if (loop.partitions < 1 || loop.partitions > store::kMostPartitions) {
    return damaged(fmt::format("has {} partitions", loop.partitions));
  }
  return loop;
}

Result<LoopFile> LoopFile::Read(const fs::path& backup) {
  const auto bytes = ReadFile(backup / kName);
  if (bytes.status().code() == StatusCode::kNotFound) {
    return Status::NotFound(
        fmt::format("{} is no backup of a cluster: it has no file '{}'", backup.string(), kName));
  }
  if (!bytes.ok()) return bytes.status();
  return Decode(bytes.value());
}

// Partitions first, then what they follow: none of them is ahead of the catalogue or the pool.
Result<std::string> BackUpCluster(store::PartitionLog& log, const fs::path& out) {
  std::uint64_t frames = 0;
  LoopFile loop;
  const Status made = MakeWhole(out, [&](const fs::path& partial) -> Status {
    const auto map = ReadMap(log);
    if (!map.ok()) return map.status();
    for (const store::PartitionState& state : map.value().partitions) {
      if (state.last_sequence == 0) {
        return Status::InvalidArgument(fmt::format(
            "partition {} was never served: there is nothing to copy yet", state.partition));
      }
      CODBAND_RETURN_IF_ERROR(CopyPartition(log, state, CopyDirectory(partial, state.partition)));
      frames += state.last_sequence;
    }
    loop.partitions = static_cast<Partition>(map.value().partitions.size());
    auto shared = ReadWholeCatalogue(log);
    if (!shared.ok()) return shared.status();
    loop.shared = std::move(shared).value();
    auto pool = ReadPool(log);
    if (!pool.ok()) return pool.status();
    loop.pool = std::move(pool).value();
    return WriteFileDurably(partial / LoopFile::kName, loop.Encode(), FileAccess::kPrivate);
  });
  if (!made.ok()) return made;
  return fmt::format("{} partitions, {} frames, {} of the catalogue", loop.partitions,
                     GroupThousands(frames), GroupThousands(std::uint64_t{loop.shared.size()}));
}

Result<std::string> RestoreCluster(const OpenLoop& open, const fs::path& from) {
  const auto loop = LoopFile::Read(from);
  if (!loop.ok()) return loop.status();
  for (Partition partition = 0; partition < loop.value().partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(CheckData(CopyDirectory(from, partition)));
  }
  const auto log = open(loop.value().partitions);
  if (!log.ok()) return log.status();
  NewLoop target(*log.value());
  CODBAND_RETURN_IF_ERROR(target.Take(loop.value().partitions));
  CODBAND_RETURN_IF_ERROR(target.PutShared(loop.value()));
  for (Partition partition = 0; partition < loop.value().partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(target.Fill(partition, CopyDirectory(from, partition)));
  }
  CODBAND_RETURN_IF_ERROR(target.LetGo());
  return fmt::format("{} partitions", loop.value().partitions);
}

Result<std::string> ImportData(const OpenLoop& open, const fs::path& data) {
  CODBAND_RETURN_IF_ERROR(CheckData(data));
  const auto log = open(1);
  if (!log.ok()) return log.status();
  NewLoop target(*log.value());
  CODBAND_RETURN_IF_ERROR(target.Take(1));
  CODBAND_RETURN_IF_ERROR(target.Fill(0, data));
  CODBAND_RETURN_IF_ERROR(target.LetGo());
  return std::string("a loop of one partition");
}

Result<std::string> ExportData(store::PartitionLog& log, const fs::path& out) {
  const auto map = ReadMap(log);
  if (!map.ok()) return map.status();
  if (map.value().partitions.size() != 1) {
    return Status::InvalidArgument(
        fmt::format("the loop has {} partitions, expected one: partitions that learned together "
                    "cannot be joined into one data directory yet; 'codband cluster backup' copies "
                    "all of them",
                    map.value().partitions.size()));
  }
  const store::PartitionState& state = map.value().partitions[0];
  if (state.last_sequence == 0) {
    return Status::InvalidArgument("the partition was never served: there is nothing to copy yet");
  }
  CODBAND_RETURN_IF_ERROR(
      MakeWhole(out, [&](const fs::path& partial) { return CopyPartition(log, state, partial); }));
  return fmt::format("everything up to frame {}", GroupThousands(state.last_sequence));
}

}  // namespace codband::server
