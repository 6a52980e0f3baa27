#include "codband/server/cluster/cluster_copy.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/cluster/frame.h"
#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"
#include "codband/server/admin/findings.h"
#include "codband/server/cluster/cluster_admin.h"
#include "codband/server/cluster/cluster_parts.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/log_calls.h"
#include "codband/server/cluster/new_loop.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;
using store::Partition;

constexpr std::uint32_t kLoopMagic = 0x706f6f6c;  // "loop"
constexpr std::uint32_t kLoopFormat = 1;
// What a server has is cut up in a directory of this name, beside its own.
constexpr const char* kImporting = ".importing";

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

namespace {

Status FillLoop(const OpenLoop& open, const LoopFile& loop, const fs::path& backup) {
  for (Partition partition = 0; partition < loop.partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(CheckData(CopyDirectory(backup, partition)));
  }
  const auto log = open(loop.partitions);
  if (!log.ok()) return log.status();
  NewLoop target(*log.value());
  CODBAND_RETURN_IF_ERROR(target.Take(loop.partitions));
  CODBAND_RETURN_IF_ERROR(target.PutShared(loop.shared, loop.pool));
  for (Partition partition = 0; partition < loop.partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(target.Fill(partition, CopyDirectory(backup, partition)));
  }
  return target.LetGo();
}

// Of one partition.
Status FillLoopWith(const OpenLoop& open, const fs::path& data) {
  CODBAND_RETURN_IF_ERROR(CheckData(data));
  const auto log = open(1);
  if (!log.ok()) return log.status();
  NewLoop target(*log.value());
  CODBAND_RETURN_IF_ERROR(target.Take(1));
  CODBAND_RETURN_IF_ERROR(target.Fill(0, data));
  return target.LetGo();
}

// An empty directory for copies, that nobody else has; what an interrupted run has left there goes.
// It is deleted in the end.
class Workshop {
 public:
  Workshop(const fs::path& scratch, const fs::path& of) {
    std::error_code error;
    fs::path source = fs::absolute(of, error).lexically_normal();
    if (!source.has_filename()) source = source.parent_path();
    directory_ = (scratch.empty() ? source.parent_path() : scratch) /
                 (source.filename().string() + kImporting);
  }
  ~Workshop() {
    std::error_code error;
    fs::remove_all(directory_, error);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  Status Clear() const {
    std::error_code error;
    fs::remove_all(directory_, error);
    return EnsurePrivateDirectory(directory_);
  }
  const fs::path& directory() const { return directory_; }

 private:
  fs::path directory_;
};

// Cuts the data up and fills a loop of several partitions with it.
Result<std::string> FillLoopOfSeveral(const OpenLoop& open, const fs::path& data,
                                      Partition partitions, const fs::path& work,
                                      std::uint64_t seed) {
  const fs::path backup = work / "partitions";
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(backup));
  auto made = SplitData(data, partitions, backup, seed);
  if (!made.ok()) return made.status();
  const auto loop = LoopFile::Read(backup);
  if (!loop.ok()) return loop.status();
  CODBAND_RETURN_IF_ERROR(FillLoop(open, loop.value(), backup));
  return std::move(made).value();
}

Status CheckPartitions(Partition partitions) {
  if (partitions >= 1 && partitions <= store::kMostPartitions) return {};
  return Status::InvalidArgument(
      fmt::format("--partitions is {}, expected 1 to {}", partitions, store::kMostPartitions));
}

}  // namespace

Result<std::string> RestoreCluster(const OpenLoop& open, const fs::path& from,
                                   const FillOptions& options) {
  const auto loop = LoopFile::Read(from);
  if (!loop.ok()) return loop.status();
  const Partition had = loop.value().partitions;
  const Partition partitions = options.partitions.value_or(had);
  CODBAND_RETURN_IF_ERROR(CheckPartitions(partitions));
  if (partitions == had) {
    CODBAND_RETURN_IF_ERROR(FillLoop(open, loop.value(), from));
    return fmt::format("{} partitions", had);
  }
  for (Partition partition = 0; partition < had; ++partition) {
    CODBAND_RETURN_IF_ERROR(CheckData(CopyDirectory(from, partition)));
  }
  const Workshop work(options.scratch, from);
  CODBAND_RETURN_IF_ERROR(work.Clear());
  const fs::path whole = work.directory() / "joined";
  CODBAND_RETURN_IF_ERROR(JoinData(from, had, whole, work.directory() / "copies", options.seed));
  if (partitions > 1)
    return FillLoopOfSeveral(open, whole, partitions, work.directory(), options.seed);
  CODBAND_RETURN_IF_ERROR(FillLoopWith(open, whole));
  return std::string("a loop of one partition");
}

Result<std::string> ImportData(const OpenLoop& open, const fs::path& data,
                               const FillOptions& options) {
  const Partition partitions = options.partitions.value_or(1);
  CODBAND_RETURN_IF_ERROR(CheckPartitions(partitions));
  if (partitions == 1) {
    CODBAND_RETURN_IF_ERROR(FillLoopWith(open, data));
    return std::string("a loop of one partition");
  }
  CODBAND_RETURN_IF_ERROR(CheckData(data));
  const Workshop work(options.scratch, data);
  CODBAND_RETURN_IF_ERROR(work.Clear());
  return FillLoopOfSeveral(open, data, partitions, work.directory(), options.seed);
}

namespace {

// All partitions are copied first, and then put together.
Status JoinPartitions(store::PartitionLog& log, const cluster::PartitionMap& map,
                      const fs::path& data, std::uint64_t seed) {
  const fs::path copies = data / "partitions";
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(copies));
  for (const store::PartitionState& state : map.partitions) {
    CODBAND_RETURN_IF_ERROR(CopyPartition(log, state, CopyDirectory(copies, state.partition)));
  }
  const auto partitions = static_cast<Partition>(map.partitions.size());
  CODBAND_RETURN_IF_ERROR(JoinData(copies, partitions, data, data / "learned", seed));
  std::error_code error;
  fs::remove_all(copies, error);
  return CheckData(data);
}

}  // namespace

Result<std::string> ExportData(store::PartitionLog& log, const fs::path& out, std::uint64_t seed) {
  const auto map = ReadMap(log);
  if (!map.ok()) return map.status();
  std::uint64_t frames = 0;
  for (const store::PartitionState& state : map.value().partitions) {
    if (state.last_sequence == 0) {
      return Status::InvalidArgument(fmt::format(
          "partition {} was never served: there is nothing to copy yet", state.partition));
    }
    frames += state.last_sequence;
  }
  const std::size_t partitions = map.value().partitions.size();
  CODBAND_RETURN_IF_ERROR(MakeWhole(out, [&](const fs::path& partial) {
    return partitions == 1 ? CopyPartition(log, map.value().partitions[0], partial)
                           : JoinPartitions(log, map.value(), partial, seed);
  }));
  if (partitions == 1) return fmt::format("everything up to frame {}", GroupThousands(frames));
  return fmt::format("{} partitions, {} frames", partitions, GroupThousands(frames));
}

}  // namespace codband::server
