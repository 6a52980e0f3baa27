#include "codband/server/cluster/erasures.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/base/file.h"
#include "codband/base/parse.h"
#include "codband/cluster/await.h"
#include "codband/server/cluster/log_calls.h"
#include "codband/server/cluster/pool_keeper.h"

namespace codband::server {
namespace {

using cluster::Await;
using store::Partition;

constexpr std::chrono::seconds kCopiesPeriod(5);
constexpr const char* kLeft = "left";  // a file of a copy that is left

std::size_t CountVersions(const std::vector<store::BlobPart>& parts, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(parts, [&](const store::BlobPart& part) {
    return part.id.name == name && part.id.part == 0;
  }));
}

// Up to which entry a copy that is left has erased users; nothing if it is in use.
std::optional<std::uint64_t> ErasedInCopy(const std::filesystem::path& copy) {
  const auto text = ReadFile(copy / kLeft);
  if (!text.ok()) return std::nullopt;
  return ParseNumber<std::uint64_t>(text.value()).value_or(0);
}

}  // namespace

std::filesystem::path CopyDirectory(const std::filesystem::path& data, Partition partition) {
  return data / fmt::format("partition-{}", partition);
}

std::string ErasureId::ToText() const { return fmt::format("{}.{}", partition, sequence); }

std::optional<ErasureId> ErasureId::Parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto partition = ParseNumber<Partition>(text.substr(0, dot));
  const auto sequence = ParseNumber<std::uint64_t>(text.substr(dot + 1));
  if (!partition || !sequence) return std::nullopt;
  return ErasureId{.partition = *partition, .sequence = *sequence};
}

void ErasedMark::Add(const ErasedMark& other) {
  erased = std::max(erased, other.erased);
  last_erased = std::max(last_erased, other.last_erased);
  shares |= other.shares;
  for (const auto& [partition, sequence] : other.pools) {
    pools[partition] = std::max(pools[partition], sequence);
  }
}

std::string ErasedMark::Encode() const {
  ByteWriter out;
  out.U64(erased);
  out.U64(last_erased);
  out.U8(shares ? 1 : 0);
  out.U64(pools.size());
  for (const auto& [partition, sequence] : pools) {
    out.U32(partition);
    out.U64(sequence);
  }
  return out.Take();
}

Result<ErasedMark> ErasedMark::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  ErasedMark mark;
  mark.erased = in.U64("erased");
  mark.last_erased = in.U64("last erased");
  mark.shares = in.U8("shares") != 0;
  for (std::size_t left = in.Count("number of partitions", 12); left > 0 && in.ok(); --left) {
    const Partition partition = in.U32("partition");
    mark.pools[partition] = in.U64("log entry");
  }
  in.ExpectEnd();
  if (in.ok()) return mark;
  return Status::Corruption("what was erased cannot be read: " + in.status().message());
}

Erasures::Erasures(store::PartitionLog& log, Options options)
    : log_(log), options_(std::move(options)) {
  for (Partition partition = 0; partition < options_.partitions; ++partition) {
    const std::filesystem::path copy = CopyDirectory(options_.data, partition);
    // Of a process that was killed: nobody knows how far it has come.
    if (std::filesystem::exists(copy / "rocksdb") && !ErasedInCopy(copy)) MarkLeft(partition, 0);
  }
  thread_ = std::thread([this] { Run(); });
}

Erasures::~Erasures() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Erasures::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kCopiesPeriod, [&] { return stopping_; })) {
    lock.unlock();
    DropOldCopies();
    lock.lock();
  }
}

Result<ErasedMark> Erasures::ReadMark(Partition partition) {
  const auto version = FindVersion(log_, partition, ErasedMark::kName);
  if (!version.ok()) return version.status();
  if (version.value() == 0) return ErasedMark();
  const auto bytes = GetBlob(log_, partition, ErasedMark::kName, version.value());
  if (!bytes.ok()) return bytes.status();
  return ErasedMark::Decode(bytes.value());
}

// There is one version, which is put again: its numbers only grow, and an owner who was fenced
// cannot put it.
void Erasures::NoteCheckpoint(const store::Claim& claim, const Cleared& cleared) {
  auto mark = ReadMark(claim.partition);
  if (!mark.ok()) return;  // the next checkpoint makes up for it
  ErasedMark now{.erased = cleared.erased, .last_erased = cleared.last_erased};
  const auto pools = options_.pool_at ? options_.pool_at(claim.partition, cleared.cleared)
                                      : std::optional<std::map<Partition, std::uint64_t>>();
  if (pools) now.pools = *pools;
  now.shares = pools.has_value();
  const ErasedMark before = mark.value();
  mark.value().Add(now);
  if (mark.value() == before) return;
  const Status put = Await<Status>([&](auto done) {
    log_.PutBlob(claim, {.name = ErasedMark::kName, .version = 1}, mark.value().Encode(),
                 std::move(done));
  });
  if (put.ok() || store::IsFenced(put)) return;
  Tell(LogLevel::kWarning, claim.partition,
       fmt::format("that users are erased cannot be noted: {}; it is tried again", put.message()));
}

void Erasures::Tell(LogLevel level, Partition partition, std::string_view message) const {
  if (!options_.log) return;
  options_.log({.level = level,
                .cause = "erasure",
                .message = fmt::format("partition {}: {}", partition, message)});
}

Result<ErasureProgress> Erasures::Look(const ErasureId& id) {
  ErasureProgress progress;
  const auto own = ReadMark(id.partition);
  if (!own.ok()) return own.status();
  if (own.value().erased < id.sequence) {
    progress.waits_for.push_back(fmt::format("the checkpoint of partition {}", id.partition));
  }
  if (options_.partitions == 1) return progress;
  std::vector<Partition> late;
  for (Partition partition = 0; partition < options_.partitions; ++partition) {
    auto mark = ReadMark(partition);
    if (!mark.ok()) return mark.status();
    if (own.value().shares && mark.value().pools[id.partition] < id.sequence) {
      late.push_back(partition);
    }
  }
  for (const Partition partition : late) {
    progress.waits_for.push_back(fmt::format("the pool in partition {}", partition));
  }
  const auto registers = ListBlobs(log_, id.partition);
  if (!registers.ok()) return registers.status();
  const auto pools = ListBlobs(log_, PoolKeeper::kMerger);
  if (!pools.ok()) return pools.status();
  bool older = CountVersions(registers.value(), PoolKeeper::kRegister) > 1;
  for (Partition partition = 0; partition < options_.partitions; ++partition) {
    older |= CountVersions(pools.value(), PoolKeeper::PoolName(partition)) > 1;
  }
  if (older) progress.waits_for.push_back("the deletion of older pools");
  return progress;
}

void Erasures::LeaveCopy(Partition partition, std::uint64_t erased) {
  const std::lock_guard lock(copies_mutex_);
  in_use_.erase(partition);
  MarkLeft(partition, erased);
}

void Erasures::MarkLeft(Partition partition, std::uint64_t erased) {
  const Status marked =
      WriteFileDurably(CopyDirectory(options_.data, partition) / kLeft, fmt::format("{}", erased));
  if (marked.ok()) return;
  Tell(LogLevel::kWarning, partition,
       fmt::format("the copy that this node leaves cannot be marked: {}; if users are erased it is "
                   "not deleted before the next start",
                   marked.message()));
}

void Erasures::UseCopy(Partition partition) {
  const std::lock_guard lock(copies_mutex_);
  in_use_.insert(partition);
  std::error_code ignored;  // it is not deleted all the same
  std::filesystem::remove(CopyDirectory(options_.data, partition) / kLeft, ignored);
}

void Erasures::DropOldCopies() {
  if (options_.data.empty()) return;
  for (Partition partition = 0; partition < options_.partitions; ++partition) {
    DropOldCopy(partition);
  }
}

void Erasures::DropOldCopy(Partition partition) {
  const std::filesystem::path copy = CopyDirectory(options_.data, partition);
  if (!ErasedInCopy(copy)) return;
  const auto mark = ReadMark(partition);
  {
    const std::lock_guard lock(copies_mutex_);
    // Once more: it may have been taken up meanwhile.
    const auto erased = ErasedInCopy(copy);
    if (!mark.ok() || !erased || mark.value().last_erased <= *erased) return;
    if (in_use_.contains(partition)) return;
    std::error_code error;
    std::filesystem::remove_all(copy / "rocksdb", error);
    if (error) {
      return Tell(LogLevel::kWarning, partition,
                  fmt::format("the copy that this node had of it has users who were erased since "
                              "and cannot be deleted: {}; it is tried again",
                              error.message()));
    }
    MarkLeft(partition, mark.value().last_erased);
  }
  Tell(LogLevel::kInfo, partition,
       "the copy that this node had of it is deleted, as users were erased since it left it");
}

}  // namespace codband::server
