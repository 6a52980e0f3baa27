#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/cluster/await.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// Questions to a log that block until they are answered. Not on a thread of the log.

// The newest complete version of a blob; 0 if there is none.
inline Result<std::uint64_t> FindVersion(store::PartitionLog& log, store::Partition partition,
                                         const std::string& name) {
  auto found = cluster::Await<Result<std::uint64_t>>(
      [&](auto done) { log.FindBlob(partition, name, std::move(done)); });
  if (found.status().code() == StatusCode::kNotFound) return std::uint64_t{0};
  return found;
}

inline Result<std::string> GetBlob(store::PartitionLog& log, store::Partition partition,
                                   const std::string& name, std::uint64_t version) {
  return cluster::Await<Result<std::string>>([&](auto done) {
    log.GetBlob(partition, {.name = name, .version = version}, std::move(done));
  });
}

// What was there a moment ago was replaced: the next look finds it.
inline bool WasReplaced(const Status& status) { return status.code() == StatusCode::kNotFound; }

inline Result<std::vector<store::BlobPart>> ListBlobs(store::PartitionLog& log,
                                                      store::Partition partition) {
  return cluster::Await<Result<std::vector<store::BlobPart>>>(
      [&](auto done) { log.ListBlobs(partition, std::move(done)); });
}

// Frames of the shared log come in pages of about this size.
inline constexpr std::size_t kSharedPageBytes = std::size_t{4} << 20;
inline Result<std::vector<store::LogFrame>> ReadSharedPage(store::PartitionLog& log,
                                                           std::uint64_t from,
                                                           std::size_t bytes = kSharedPageBytes) {
  return cluster::Await<Result<std::vector<store::LogFrame>>>(
      [&](auto done) { log.ReadShared(from, bytes, std::move(done)); });
}

}  // namespace codband::server
