#include "codband/server/cluster/pool_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "codband/base/bytes.h"
#include "codband/base/clock.h"
#include "codband/cluster/await.h"
#include "codband/server/cluster/log_calls.h"

namespace codband::server {
namespace {

using cluster::Await;
using store::Partition;

constexpr int kEpochShift = 32;  // versions of later owners are higher
// No register and no pool of before begins like this.
constexpr std::uint64_t kWithSequences = 0xffff'5e90'ffff'5e90;

std::int64_t NowMs() { return static_cast<std::int64_t>(1000 * WallSeconds()); }

// Puts a version and deletes those before it.
Status Replace(store::PartitionLog& log, const store::Claim& claim, const std::string& name,
               std::uint64_t version, std::string bytes) {
  const Status put = Await<Status>([&](auto done) {
    log.PutBlob(claim, {.name = name, .version = version}, std::move(bytes), std::move(done));
  });
  // If they stay, the next one deletes them.
  if (put.ok()) log.DeleteBlobs(claim, name, version, [](const Status&) {});
  return put;
}

using Numbers = std::map<Partition, std::uint64_t>;

void SaveNumbers(const Numbers& numbers, ByteWriter& out) {
  out.U64(numbers.size());
  for (const auto& [partition, number] : numbers) {
    out.U32(partition);
    out.U64(number);
  }
}

Numbers LoadNumbers(ByteReader& in) {
  Numbers numbers;
  for (std::size_t left = in.Count("number of registers", 12); left > 0 && in.ok(); --left) {
    const Partition partition = in.U32("partition");
    numbers[partition] = in.U64("version");
  }
  return numbers;
}

std::int64_t CountFresh(const Numbers& versions, const Numbers& merged) {
  return std::ranges::count_if(versions, [&](const auto& each) {
    const auto before = merged.find(each.first);
    return before == merged.end() || before->second < each.second;
  });
}

// A pool is written for every partition, whoever has news: the fewer registers are new, the longer
// it waits for others. Beyond the time between pools of which all are.
std::int64_t MoreToWaitMs(std::int64_t spacing_ms, std::int64_t partitions, std::int64_t fresh) {
  return std::min(spacing_ms * (partitions - fresh) / std::max<std::int64_t>(1, fresh),
                  PoolKeeper::kAtTheLatestMs - spacing_ms);
}

}  // namespace

std::string RegisterBlob::Encode() const {
  ByteWriter out;
  out.U64(kWithSequences);
  out.U64(sequence);
  out.String(bytes);
  return out.Take();
}

Result<RegisterBlob> RegisterBlob::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  RegisterBlob blob;
  if (!in.Skip(kWithSequences)) {
    blob.bytes = bytes;
    return blob;
  }
  blob.sequence = in.U64("log entry");
  blob.bytes = in.String("register");
  in.ExpectEnd();
  if (in.ok()) return blob;
  return Status::Corruption("a register cannot be read: " + in.status().message());
}

std::string PoolBlob::Encode() const {
  ByteWriter out;
  out.U64(kWithSequences);
  SaveNumbers(sequences, out);
  SaveNumbers(registers, out);
  out.String(import);
  return out.Take();
}

Result<PoolBlob> PoolBlob::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  PoolBlob blob;
  if (in.Skip(kWithSequences)) blob.sequences = LoadNumbers(in);
  blob.registers = LoadNumbers(in);
  blob.import = in.String("pool");
  in.ExpectEnd();
  if (in.ok()) return blob;
  return Status::Corruption("a pool cannot be read: " + in.status().message());
}

std::string PoolKeeper::PoolName(Partition partition) { return fmt::format("pool.{}", partition); }

PoolKeeper::PoolKeeper(store::PartitionLog& log, Partition partitions, LogSink sink)
    : log_(log), partitions_(partitions), sink_(std::move(sink)), thread_([this] { Run(); }) {}

PoolKeeper::~PoolKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PoolKeeper::Attach(const store::Claim& claim, engine::Engine& engine) {
  if (!engine.partition()->shares()) return;
  const std::lock_guard lock(mutex_);
  members_[claim.partition] = std::make_shared<Member>(claim, engine);
}

void PoolKeeper::Detach(Partition partition) {
  std::shared_ptr<Member> member;
  {
    const std::lock_guard lock(mutex_);
    const auto found = members_.extract(partition);
    if (found.empty()) return;
    member = found.mapped();
  }
  member->lent.TakeBack();
}

PoolKeeper::Facts PoolKeeper::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

void PoolKeeper::Run() {
  std::int64_t looked_ms = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(kPeriodMs), [&] { return stopping_; });
      if (stopping_) return;
    }
    const std::int64_t now_ms = BootMillis();
    const bool look = woken_->exchange(false) || now_ms - looked_ms >= kLookMs;
    if (look) looked_ms = now_ms;
    Step(look);
  }
}

void PoolKeeper::Step(bool look) {
  const std::lock_guard stepping(step_mutex_);
  look_for_registers_ |= look;
  Members members;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [partition, member] : members_) members.push_back(member);
  }
  const std::int64_t now_ms = NowMs();
  Status status;
  const auto note = [&](const Status& next) {
    if (!next.ok() && !WasReplaced(next) && !store::IsFenced(next)) status = next;
  };
  for (const auto& member : members) {
    member->look |= look;
    note(Publish(*member, now_ms));
  }
  for (const auto& member : members) {
    if (member->claim.partition == kMerger) note(Merge(*member, now_ms));
  }
  for (const auto& member : members) note(Import(member));
  Note(status);
  std::int64_t age_ms = 0;
  for (const auto& member : members) {
    if (!member->unmerged.empty()) {
      age_ms = std::max(age_ms, now_ms - member->unmerged.front().second);
    }
  }
  const std::lock_guard lock(mutex_);
  facts_.age_seconds = static_cast<double>(age_ms) / 1000;
}

std::int64_t PoolKeeper::SpacingMs(std::int64_t bytes_each) const {
  return std::clamp(1000 * partitions_ * bytes_each / kBytesPerSecond, kPeriodMs, kAtTheLatestMs);
}

Status PoolKeeper::Publish(Member& member, std::int64_t now_ms) {
  if (now_ms < member.next_ms) return {};
  const std::uint64_t version = member.claim.epoch << kEpochShift | (member.registers + 1);
  std::optional<engine::Partition::Register> made;
  std::uint64_t learned = member.learned;
  member.lent.Use([&](engine::Partition& partition) {
    learned = partition.learned();
    if (learned == member.learned) return;
    made = partition.Publish(version, now_ms - member.published_ms >= kAtTheLatestMs);
  });
  if (!made) return {};
  const RegisterBlob blob{.sequence = made->sequence, .bytes = std::move(made->bytes)};
  std::string bytes = blob.Encode();
  const auto size = static_cast<std::int64_t>(bytes.size());
  ++member.registers;
  member.next_ms = now_ms + SpacingMs(size);
  const Status put = Replace(log_, member.claim, kRegister, version, std::move(bytes));
  if (!put.ok()) {
    member.published_ms = 0;  // what was in it is no news any more, but nobody has it
    return put;
  }
  member.learned = learned;
  member.published_ms = now_ms;
  member.unmerged.emplace_back(version, now_ms);
  const std::lock_guard lock(mutex_);
  facts_.bytes += static_cast<std::uint64_t>(size);
  return {};
}

Status PoolKeeper::ReadRegisters() {
  for (Partition partition = 0; partition < partitions_; ++partition) {
    const auto version = FindVersion(log_, partition, kRegister);
    if (!version.ok()) return version.status();
    if (version.value() <= versions_[partition]) continue;
    const auto bytes = GetBlob(log_, partition, kRegister, version.value());
    if (WasReplaced(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    auto blob = RegisterBlob::Decode(bytes.value());
    if (!blob.ok()) return blob.status();
    const auto put = shelf_.Put(std::move(blob.value().bytes));
    if (!put.ok()) return put.status();
    versions_[partition] = version.value();
    sequences_[partition] = blob.value().sequence;
  }
  return {};
}

Status PoolKeeper::Merge(Member& first, std::int64_t now_ms) {
  if (epoch_ != first.claim.epoch) {
    // Goes on with the pool of who merged before.
    const auto version = FindVersion(log_, kMerger, PoolName(kMerger));
    if (!version.ok()) return version.status();
    previous_.clear();
    if (version.value() > 0) {
      const auto bytes = GetBlob(log_, kMerger, PoolName(kMerger), version.value());
      if (!bytes.ok()) return bytes.status();
      auto blob = PoolBlob::Decode(bytes.value());
      if (!blob.ok()) return blob.status();
      previous_ = std::move(blob).value().import;
    }
    shelf_ = {};
    versions_.clear();
    merged_versions_.clear();
    sequences_.clear();
    pools_ = 0;
    next_merge_ms_ = 0;
    look_for_registers_ = true;
    epoch_ = first.claim.epoch;
  }
  if (now_ms < next_merge_ms_) return {};
  if (look_for_registers_) CODBAND_RETURN_IF_ERROR(ReadRegisters());
  look_for_registers_ = false;
  const std::vector<std::string> registers = shelf_.registers();
  if (registers.empty() || versions_ == merged_versions_) return {};
  if (now_ms < next_merge_ms_ + MoreToWaitMs(SpacingMs(static_cast<std::int64_t>(previous_.size())),
                                             partitions_, CountFresh(versions_, merged_versions_)))
    return {};
  Result<SharedPool::Merged> merged = Status(StatusCode::kUnavailable, "the partition is closed");
  const bool used = first.lent.Use(
      [&](engine::Partition& partition) { merged = partition.Merge(registers, previous_); });
  if (!used) return {};
  if (!merged.ok()) return merged.status();
  CODBAND_RETURN_IF_ERROR(WritePools(first, merged.value()));
  merged_versions_ = versions_;
  std::size_t most = 0;
  for (const auto& [partition, import] : merged.value().imports) {
    most = std::max(most, import.size());
  }
  next_merge_ms_ = now_ms + SpacingMs(static_cast<std::int64_t>(most));
  return {};
}

Status PoolKeeper::WritePools(Member& first, const SharedPool::Merged& merged) {
  const std::uint64_t version = first.claim.epoch << kEpochShift | ++pools_;
  std::uint64_t bytes = 0;
  // Partition 0 last: a merger goes on with that one, and the others have it then.
  for (auto each = merged.imports.rbegin(); each != merged.imports.rend(); ++each) {
    const PoolBlob blob{.registers = versions_, .import = each->second, .sequences = sequences_};
    std::string encoded = blob.Encode();
    bytes += encoded.size();
    CODBAND_RETURN_IF_ERROR(
        Replace(log_, first.claim, PoolName(each->first), version, std::move(encoded)));
  }
  const auto own = merged.imports.find(kMerger);
  previous_ = own == merged.imports.end() ? merged.imports.begin()->second : own->second;
  const std::lock_guard lock(mutex_);
  ++facts_.merged;
  facts_.bytes += bytes;
  return {};
}

Status PoolKeeper::Import(const std::shared_ptr<Member>& member) {
  if (member->importing) return {};
  NoteImported(*member);
  if (member->import_failed.exchange(false)) {  // once more
    member->pool = 0;
    member->look = true;
  }
  if (!member->look) return {};
  const Partition partition = member->claim.partition;
  const auto version = FindVersion(log_, kMerger, PoolName(partition));
  if (!version.ok()) return version.status();
  member->look = version.value() > member->pool;
  if (!member->look) return {};
  const auto bytes = GetBlob(log_, kMerger, PoolName(partition), version.value());
  if (!bytes.ok()) return bytes.status();
  auto blob = PoolBlob::Decode(bytes.value());
  if (!blob.ok()) return blob.status();
  member->importing = true;
  member->importing_sequences = std::move(blob.value().sequences);
  const bool used = member->lent.Use([&](engine::Partition& engine) {
    engine.Import(std::move(blob.value().import), [member](const Status& status) {
      (status.ok() ? member->imported : member->import_failed) = true;
      member->importing = false;
    });
  });
  if (!used) return {};
  member->look = false;
  member->pool = version.value();
  const std::uint64_t has = blob.value().registers[partition];
  while (!member->unmerged.empty() && member->unmerged.front().first <= has) {
    member->unmerged.pop_front();
  }
  const std::lock_guard lock(mutex_);
  ++facts_.imported;
  return {};
}

// It was imported by an entry of the log that is durable by now.
void PoolKeeper::NoteImported(Member& member) {
  if (!member.imported.exchange(false)) return;
  std::uint64_t before = 0;
  if (!member.lent.Use([&](engine::Partition& partition) { before = partition.committed(); })) {
    return;
  }
  const std::lock_guard lock(mutex_);
  member.imports.emplace_back(before, std::move(member.importing_sequences));
}

std::optional<PoolKeeper::Sequences> PoolKeeper::PoolAt(Partition partition,
                                                        std::uint64_t cleared) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(partition);
  if (found == members_.end()) return std::nullopt;
  auto& imports = found->second->imports;
  while (imports.size() > 1 && imports[1].first <= cleared) imports.pop_front();
  if (imports.empty() || imports.front().first > cleared) return Sequences();
  return imports.front().second;
}

void PoolKeeper::Note(const Status& status) {
  if (std::exchange(in_trouble_, !status.ok()) == !status.ok() || !sink_) return;
  sink_({.level = status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
         .cause = "pool",
         .message =
             status.ok()
                 ? "partitions learn together again"
                 : fmt::format("partitions cannot learn together now: {}; each learns from its own "
                               "users meanwhile, nothing is lost, it is tried again",
                               status.message())});
}

}  // namespace codband::server
