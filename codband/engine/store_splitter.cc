#include "codband/engine/store_splitter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codband/engine/activity_series.h"
#include "codband/engine/column_owners.h"
#include "codband/engine/committer.h"
#include "codband/engine/eraser.h"
#include "codband/engine/group_series.h"
#include "codband/engine/repair.h"

namespace codband::engine {
namespace {

using store::Table;

// Items are put in frames of about this size.
constexpr std::size_t kFrameBytes = std::size_t{1} << 20;

}  // namespace

Result<std::unique_ptr<StoreSplitter>> StoreSplitter::Open(const store::Store& whole,
                                                           std::uint32_t partitions,
                                                           SharedPool::PartitionOf partition_of) {
  std::unique_ptr<StoreSplitter> splitter(
      new StoreSplitter(whole, partitions, std::move(partition_of)));
  CODBAND_RETURN_IF_ERROR(splitter->Read());
  return splitter;
}

Status StoreSplitter::Read() {
  auto identity = ReadIdentity(whole_);
  if (!identity.ok()) return identity.status();
  identity_ = std::move(identity).value();
  if (!identity_.name_secret) {
    return Status::InvalidArgument(
        "the directory was made by a version that gave users ids without a secret, and a loop of "
        "several partitions has one: it can be taken into one partition only");
  }
  names_ = NameHash(*identity_.name_secret);
  auto checkpoint = CheckpointRecord::Get(whole_);
  if (!checkpoint.ok()) return checkpoint.status();
  checkpoint_ = std::move(checkpoint).value();
  std::string clock;
  const Status found = whole_.Get(Table::kMeta, ClockRecord::kKey, clock);
  const auto stood = found.ok() ? ClockRecord::Decode(clock) : Result<ClockRecord>(found);
  time_ms_ = stood.ok() ? stood.value().wall_ms : identity_.created_ms;
  auto columns = LoadColumns(checkpoint_);
  if (!columns.ok()) return columns.status();
  CODBAND_RETURN_IF_ERROR(ForgetPrivateNames(columns.value()));
  CODBAND_RETURN_IF_ERROR(SplitPolicy());
  CODBAND_RETURN_IF_ERROR(SplitPeople(columns.value()));
  CODBAND_RETURN_IF_ERROR(PlaceDecisions());
  return MakeCatalogue(columns.value());
}

// The log of the loop is kept for good, so nothing of one user goes there.
Status StoreSplitter::ForgetPrivateNames(ColumnBook& columns) {
  ColumnOwners owners;
  CODBAND_RETURN_IF_ERROR(owners.Load(whole_, [&](std::uint32_t column) {
    return column < columns.space().size() &&
           columns.space().column(column).kind == features::ColumnSpace::Kind::kName;
  }));
  const std::vector<std::uint32_t> owned = owners.Owned();
  forgotten_names_ = owned.size();
  columns.ForgetNames(owned);
  return {};
}

Status StoreSplitter::SplitPolicy() {
  const auto policy = LoadPolicy(identity_, checkpoint_);
  if (!policy.ok()) return policy.status();
  auto parts = policy.value()->shared_pool()->Split(
      static_cast<std::uint32_t>(parts_.size()), partition_of_,
      [&](const PagedUsers::VisitRecord& visit) {
        Status damaged;
        const Status read = whole_.Scan(Table::kUsers, {}, {}, [&](auto key, auto value) {
          const auto user = ReadNumberKey(key);
          damaged = user.status();
          return user.ok() && visit(user.value(), value);
        });
        return read.ok() ? damaged : read;
      });
  if (!parts.ok()) return parts.status();
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].learned = std::move(parts.value()[p]);
  }
  return {};
}

Status StoreSplitter::SplitPeople(const ColumnBook& columns) {
  for (Part& part : parts_) part.columns = columns.WithoutUses();
  CODBAND_RETURN_IF_ERROR(
      ScanAll(whole_, Table::kPeople, kWholeTable, [&](auto key, auto value) -> Status {
        const auto user = ReadNumberKey(key);
        if (!user.ok()) return user.status();
        Person person;
        ByteReader in(value);
        person.Load(in);
        in.ExpectEnd();
        if (!in.ok()) return in.status();
        Part& part = parts_[partition_of_(user.value())];
        ++part.users;
        part.changes += person.moves.size();
        part.columns.Add(person.columns, person.observations);
        return {};
      }));
  for (const Change& change : checkpoint_.recent) {
    parts_[PartitionOfName(change.user)].recent.push_back(change);
  }
  // What is nobody's is the first one's.
  Part& first = parts_[0];
  first.columns = columns;
  std::uint64_t changes = 0;
  for (Part& part : std::span(parts_).subspan(1)) {
    part.columns.TakeRangesOf(columns);
    first.columns.Subtract(part.columns);
    changes += part.changes;
  }
  first.changes = checkpoint_.changes - std::min(changes, checkpoint_.changes);
  return {};
}

std::uint32_t StoreSplitter::PartitionOfDecision(const std::string& event,
                                                 std::string_view bytes) const {
  const auto waiting = PendingDecision::WaitingUser(bytes);
  if (waiting && waiting->id != kNobody) return partition_of_(waiting->id);
  const auto maker = PartitionOfEvent(event);
  return maker && *maker < parts_.size() ? *maker : PartitionOfName(event);
}

Status StoreSplitter::PlaceDecisions() {
  return ScanAll(whole_, Table::kPending, kWholeTable, [&](auto key, auto value) -> Status {
    std::string event(key);
    const std::uint32_t partition = PartitionOfDecision(event, value);
    decisions_.emplace(std::move(event), partition);
    return {};
  });
}

Status StoreSplitter::MakeCatalogue(const ColumnBook& columns) {
  if (identity_.dim == 0 && columns.space().size() > 0) {
    catalogue_.push_back({.columns = columns.space().Additions()});
  }
  std::size_t bytes = kFrameBytes;
  return ScanAll(whole_, Table::kItems, kWholeTable, [&](auto, auto value) -> Status {
    auto item = DecodeItem(value);
    if (!item.ok()) return item.status();
    if (bytes >= kFrameBytes) {
      catalogue_.emplace_back();
      bytes = 0;
    }
    bytes += value.size();
    catalogue_.back().put.push_back(std::move(item).value());
    return {};
  });
}

// The users of a partition are next to each other.
KeyRange StoreSplitter::UsersOf(std::uint32_t partition) const {
  const auto first_of = [&](std::uint32_t of) {
    UserId low = 0;
    UserId high = std::numeric_limits<UserId>::max();
    while (low < high) {
      const UserId middle = low + (high - low) / 2;
      if (partition_of_(middle) < of) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return NumberKey(low);
  };
  const bool last = partition + 1 == parts_.size();
  return {.from = first_of(partition), .to = last ? std::string() : first_of(partition + 1)};
}

Status StoreSplitter::CopyTable(Table table, const KeyRange& range, TableWriter& out) const {
  return ScanAll(whole_, table, range,
                 [&](auto key, auto value) { return out.Put(table, key, std::string(value)); });
}

std::optional<std::uint32_t> StoreSplitter::PartitionOfMeta(std::string_view key,
                                                            std::string_view value) const {
  for (const std::string_view prefix : {Eraser::kPrefix, PendingDecisions::kForgottenPrefix}) {
    if (!key.starts_with(prefix)) continue;
    const auto user = ReadNumberKey(key.substr(prefix.size()));
    return user.ok() ? partition_of_(user.value()) : 0;
  }
  if (IsQuarantineKey(key)) {
    const auto entry = DecodeQuarantined(value);
    return entry.ok() && !entry.value().user.empty() ? PartitionOfName(entry.value().user) : 0;
  }
  if (key.starts_with(ActivitySeries::kPrefix) || key == kDroppedUsersKey) return 0;
  return std::nullopt;
}

Status StoreSplitter::FillMeta(std::uint32_t partition, TableWriter& out) const {
  const KeyRange owners = WithPrefix(ColumnOwners::kPrefix);
  CODBAND_RETURN_IF_ERROR(
      ScanAll(whole_, Table::kMeta, kWholeTable, [&](auto key, auto value) -> Status {
        const bool of_owner = key >= owners.from && key < owners.to;
        if (of_owner || key == kCatalogueKey) return {};
        if (PartitionOfMeta(key, value).value_or(partition) != partition) return {};
        return out.Put(Table::kMeta, key, std::string(value));
      }));
  return out.Put(Table::kMeta, kCatalogueKey, NumberKey(catalogue_.size() + 1));
}

Status StoreSplitter::FillCheckpoint(std::uint32_t partition, TableWriter& out) const {
  const Part& part = parts_[partition];
  CheckpointRecord record{.spec = checkpoint_.spec,
                          .sequence = checkpoint_.sequence,
                          .users = part.users,
                          .changes = part.changes,
                          .recent = part.recent,
                          .shared = part.learned.shared};
  if (identity_.dim == 0) {
    ByteWriter columns;
    part.columns.Save(columns);
    record.columns = columns.Take();
  }
  const std::string bytes = record.Encode();
  for (const Table table : {Table::kCheckpoint, Table::kCheckpointCopy}) {
    CODBAND_RETURN_IF_ERROR(out.Put(table, CheckpointRecord::kKey, bytes));
    if (table == Table::kCheckpointCopy) {
      CODBAND_RETURN_IF_ERROR(out.Put(table, Identity::kKey, identity_.Encode()));
    } else if (partition == 0) {
      CODBAND_RETURN_IF_ERROR(CopyTable(table, WithPrefix(GroupSeries::kPrefix), out));
    }
  }
  LogRecord first_pool{.kind = LogRecord::Kind::kPool, .time_ms = time_ms_};
  first_pool.pool = part.learned.import;
  return out.Put(Table::kLog, NumberKey(checkpoint_.sequence + 1), first_pool.Encode());
}

Status StoreSplitter::FillDecisions(std::uint32_t partition, TableWriter& out) const {
  CODBAND_RETURN_IF_ERROR(
      ScanAll(whole_, Table::kPending, kWholeTable, [&](auto key, auto value) -> Status {
        if (decisions_.at(std::string(key)) != partition) return {};
        return out.Put(Table::kPending, key, std::string(value));
      }));
  return ScanAll(whole_, Table::kDeadlines, kWholeTable, [&](auto key, auto value) -> Status {
    auto deadline = Deadline::Decode(key, value);
    if (!deadline.ok()) return deadline.status();
    std::erase_if(deadline.value().event_ids, [&](const std::string& event) {
      const auto found = decisions_.find(event);
      return found == decisions_.end() || found->second != partition;
    });
    if (deadline.value().event_ids.empty()) return {};
    return out.Put(Table::kDeadlines, key, deadline.value().Encode());
  });
}

Status StoreSplitter::Fill(std::uint32_t partition, store::Store& part) const {
  TableWriter out(part);
  CODBAND_RETURN_IF_ERROR(FillMeta(partition, out));
  CODBAND_RETURN_IF_ERROR(FillCheckpoint(partition, out));
  for (const Table table : {Table::kUsers, Table::kPeople}) {
    CODBAND_RETURN_IF_ERROR(CopyTable(table, UsersOf(partition), out));
  }
  for (const Table table : {Table::kItems, Table::kImported}) {
    CODBAND_RETURN_IF_ERROR(CopyTable(table, kWholeTable, out));
  }
  CODBAND_RETURN_IF_ERROR(FillDecisions(partition, out));
  CODBAND_RETURN_IF_ERROR(out.Finish());
  return LearnAll(part, 0, partition);  // nothing of it is drawn
}

}  // namespace codband::engine
