#include "codband/server/cluster/cluster_parts.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "codband/base/file.h"
#include "codband/base/text.h"
#include "codband/cluster/partition_map.h"
#include "codband/engine/store_copy.h"
#include "codband/engine/store_joiner.h"
#include "codband/engine/store_splitter.h"
#include "codband/server/cluster/cluster_copy.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/server/cluster/shared_catalogue.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {
namespace {

namespace fs = std::filesystem;
using store::Partition;

// Each of many that are written once.
constexpr store::RocksDbOptions kWritten{.cache_bytes = 8 << 20, .write_buffer_bytes = 16 << 20};
constexpr store::RocksDbOptions kRead{
    .create = false, .read_only = true, .cache_bytes = 8 << 20, .write_buffer_bytes = 4 << 20};

Status RemoveAll(const fs::path& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
  return error ? Status::IoError(
                     fmt::format("{}: cannot be deleted: {}", directory.string(), error.message()))
               : Status();
}

Result<std::unique_ptr<store::Store>> MakeStore(const fs::path& directory) {
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(directory));
  return store::OpenRocksDbStore(directory, kWritten);
}

// A copy of the data that has learned what is in its log.
Status CopyLearned(const fs::path& from, const fs::path& to, std::uint64_t seed,
                   std::optional<Partition> partition) {
  const auto source = store::OpenRocksDbStore(from, kRead);
  if (!source.ok()) return source.status();
  const auto copy = MakeStore(to);
  if (!copy.ok()) return copy.status();
  CODBAND_RETURN_IF_ERROR(engine::CopyAll(*source.value(), *copy.value()));
  const Status learned = engine::LearnAll(*copy.value(), seed, partition);
  if (learned.ok()) return learned;
  return {learned.code(), fmt::format("{}: {}", from.string(), learned.message())};
}

std::string PoolOf(const engine::StoreSplitter& splitter, Partition partitions) {
  PoolBlob pool{.import = splitter.pool()};
  for (Partition partition = 0; partition < partitions; ++partition) pool.registers[partition] = 0;
  return pool.Encode();
}

}  // namespace

Result<std::string> SplitData(const fs::path& data, Partition partitions, const fs::path& backup,
                              std::uint64_t seed) {
  const fs::path copy = backup / "whole";
  CODBAND_RETURN_IF_ERROR(CopyLearned(data, copy, seed, {}));
  LoopFile loop{.partitions = partitions};
  std::size_t forgotten = 0;
  {
    const auto whole = store::OpenRocksDbStore(copy, kRead);
    if (!whole.ok()) return whole.status();
    const auto made = engine::StoreSplitter::Open(*whole.value(), partitions, [&](UserId user) {
      return cluster::PartitionOf(user, partitions);
    });
    if (!made.ok()) return made.status();
    const engine::StoreSplitter& splitter = *made.value();
    const engine::Identity& identity = splitter.identity();
    loop.shared.push_back(
        LoopIdentity{.dim = identity.dim, .name_secret = *identity.name_secret}.Encode());
    for (const engine::CatalogueChange& change : splitter.catalogue()) {
      loop.shared.push_back(engine::EncodeChanges({&change, 1}));
    }
    loop.pool = PoolOf(splitter, partitions);
    forgotten = splitter.forgotten_names();
    for (Partition partition = 0; partition < partitions; ++partition) {
      const auto part = MakeStore(CopyDirectory(backup, partition));
      if (!part.ok()) return part.status();
      CODBAND_RETURN_IF_ERROR(splitter.Fill(partition, *part.value()));
    }
  }
  CODBAND_RETURN_IF_ERROR(
      WriteFileDurably(backup / LoopFile::kName, loop.Encode(), FileAccess::kPrivate));
  CODBAND_RETURN_IF_ERROR(RemoveAll(copy));
  std::string text = fmt::format("{} partitions", partitions);
  if (forgotten > 0) {
    text += fmt::format(
        "; {} names of features that one user alone had sent were forgotten: a loop of several "
        "partitions keeps none of those",
        GroupThousands(forgotten));
  }
  return text;
}

Status JoinData(const fs::path& backup, Partition partitions, const fs::path& data,
                const fs::path& scratch, std::uint64_t seed) {
  if (partitions == 1) return CopyLearned(CopyDirectory(backup, 0), data, seed, {});
  for (Partition partition = 0; partition < partitions; ++partition) {
    CODBAND_RETURN_IF_ERROR(CopyLearned(CopyDirectory(backup, partition),
                                        CopyDirectory(scratch, partition), seed, partition));
  }
  {
    const auto whole = MakeStore(data);
    if (!whole.ok()) return whole.status();
    CODBAND_RETURN_IF_ERROR(engine::JoinStores(
        partitions,
        [&](std::uint32_t partition) {
          return store::OpenRocksDbStore(CopyDirectory(scratch, partition), kRead);
        },
        *whole.value()));
  }
  return RemoveAll(scratch);
}

}  // namespace codband::server
