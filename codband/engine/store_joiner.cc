#include "codband/engine/store_joiner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codband/engine/activity_series.h"
#include "codband/engine/committer.h"
#include "codband/engine/eraser.h"
#include "codband/engine/group_series.h"
#include "codband/engine/repair.h"
#include "codband/engine/store_copy.h"
#include "codband/policy/shared_pool.h"

namespace codband::engine {
namespace {

using store::Table;

constexpr std::size_t kMostRecent = 200;

class Joiner {
 public:
  Joiner(std::uint32_t partitions, const OpenPartition& open, store::Store& whole)
      : open_(open), parts_(partitions), out_(whole) {}

  Status Run() {
    CODBAND_RETURN_IF_ERROR(ForEach([&](Part& part, const store::Store& store) {
      const Status read = ReadPart(part, store);
      return read.ok() ? read
                       : Status(read.code(),
                                fmt::format("partition {}: {}", part.number, read.message()));
    }));
    CODBAND_RETURN_IF_ERROR(StartJoining());
    CODBAND_RETURN_IF_ERROR(
        ForEach([&](Part& part, const store::Store& store) { return TakeUsers(part, store); }));
    CODBAND_RETURN_IF_ERROR(
        ForEach([&](Part& part, const store::Store& store) { return TakePeople(part, store); }));
    CODBAND_RETURN_IF_ERROR(
        ForEach([&](Part& part, const store::Store& store) { return TakeDecisions(part, store); }));
    CODBAND_RETURN_IF_ERROR(ForEach([&](Part& part, const store::Store& store) {
      if (part.number != farthest_) return Status();
      return ScanAll(store, Table::kItems, kWholeTable, [&](auto key, auto value) {
        return out_.Put(Table::kItems, key, std::string(value));
      });
    }));
    CODBAND_RETURN_IF_ERROR(
        ForEach([&](Part& part, const store::Store& store) { return TakeMeta(part, store); }));
    CODBAND_RETURN_IF_ERROR(WriteMeta());
    CODBAND_RETURN_IF_ERROR(WriteCheckpoint());
    return out_.Finish();
  }

 private:
  struct Part {
    std::uint32_t number = 0;
    Identity identity = {};
    CheckpointRecord checkpoint = {};
    ColumnBook columns = {};
    std::unique_ptr<Policy> policy = {};
    std::string nobody = {};
    std::uint64_t catalogue = 0;
    ClockRecord clock = {};
    std::int64_t later_ms = 0;  // how much later it is by the clock of all
  };

  template <typename Visit>
  Status ForEach(const Visit& visit) {
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      const auto store = open_(p);
      if (!store.ok()) return store.status();
      parts_[p].number = p;
      CODBAND_RETURN_IF_ERROR(visit(parts_[p], *store.value()));
    }
    return {};
  }

  static Status ReadPart(Part& part, const store::Store& store) {
    auto identity = ReadIdentity(store);
    if (!identity.ok()) return identity.status();
    part.identity = std::move(identity).value();
    auto checkpoint = CheckpointRecord::Get(store);
    if (!checkpoint.ok()) return checkpoint.status();
    part.checkpoint = std::move(checkpoint).value();
    auto columns = LoadColumns(part.checkpoint);
    if (!columns.ok()) return columns.status();
    part.columns = std::move(columns).value();
    auto policy = LoadPolicy(part.identity, part.checkpoint);
    if (!policy.ok()) return policy.status();
    part.policy = std::move(policy).value();
    const auto get = [&](Table table, std::string_view key, std::string& bytes) {
      const Status found = store.Get(table, key, bytes);
      return found.code() == StatusCode::kNotFound ? Status() : found;
    };
    CODBAND_RETURN_IF_ERROR(get(Table::kUsers, NumberKey(kNobody), part.nobody));
    std::string bytes;
    CODBAND_RETURN_IF_ERROR(get(Table::kMeta, kCatalogueKey, bytes));
    if (!bytes.empty()) part.catalogue = ReadNumberKey(bytes).value();
    bytes.clear();
    CODBAND_RETURN_IF_ERROR(get(Table::kMeta, ClockRecord::kKey, bytes));
    auto clock = bytes.empty() ? ClockRecord() : ClockRecord::Decode(bytes);
    if (clock.ok()) part.clock = std::move(clock).value();
    return clock.status();
  }

  Status StartJoining() {
    const Part& first = parts_[0];
    std::vector<SharedPool::Joined> joined;
    for (Part& part : parts_) {
      if (part.identity.dim != first.identity.dim ||
          part.identity.name_secret != first.identity.name_secret) {
        return Status::InvalidArgument(
            fmt::format("partition {} is not of the same loop as partition 0", part.number));
      }
      if (part.checkpoint.spec != first.checkpoint.spec) {
        return Status::InvalidArgument(
            fmt::format("partition {} has the policy '{}', expected '{}'", part.number,
                        part.checkpoint.spec, first.checkpoint.spec));
      }
      if (part.catalogue > parts_[farthest_].catalogue) farthest_ = part.number;
      if (part.columns.space().size() > parts_[widest_].columns.space().size()) {
        widest_ = part.number;
      }
      if (part.clock.wait_ms > clock_.wait_ms) clock_ = part.clock;
      sequence_ = std::max(sequence_, part.checkpoint.sequence);
      joined.push_back({.policy = part.policy.get(), .nobody = part.nobody});
    }
    for (Part& part : parts_) part.later_ms = clock_.wait_ms - part.clock.wait_ms;
    auto joining = first.policy->shared_pool()->Join(std::move(joined));
    if (!joining.ok()) return joining.status();
    joining_ = std::move(joining).value();
    return {};
  }

  // The ids of a partition come before those of the next one.
  Status TakeUsers(const Part& part, const store::Store& store) {
    CODBAND_RETURN_IF_ERROR(
        ScanAll(store, Table::kUsers, kWholeTable, [&](auto key, auto value) -> Status {
          if (key == NumberKey(kNobody)) return {};
          auto record = joining_->Take(part.number, value);
          if (!record.ok()) return record.status();
          return out_.Put(Table::kUsers, key, std::move(record).value());
        }));
    const bool last = part.number + 1 == parts_.size();
    if (!last || joining_->nobody().empty()) return {};
    return out_.Put(Table::kUsers, NumberKey(kNobody), joining_->nobody());
  }

  Status TakePeople(const Part&, const store::Store& store) {
    return ScanAll(store, Table::kPeople, kWholeTable, [&](auto key, auto value) -> Status {
      Person person;
      ByteReader in(value);
      person.Load(in);
      in.ExpectEnd();
      if (!in.ok()) return in.status();
      for (Person::Move& move : person.moves) {
        move.from = joining_->NameOf(move.from);
        move.to = joining_->NameOf(move.to);
      }
      ByteWriter bytes;
      person.Save(bytes);
      return out_.Put(Table::kPeople, key, bytes.Take());
    });
  }

  Status TakeDecisions(const Part& part, const store::Store& store) {
    CODBAND_RETURN_IF_ERROR(
        ScanAll(store, Table::kPending, kWholeTable, [&](auto key, auto value) -> Status {
          auto pending = PendingDecision::Decode(value);
          if (!pending.ok()) return pending.status();
          PendingDecision& decision = pending.value();
          decision.deadline_ms += part.later_ms;
          decision.made_ms += part.later_ms;
          decision.decision.model = joining_->NameOf(decision.decision.model);
          return out_.Put(Table::kPending, key, decision.Encode());
        }));
    CODBAND_RETURN_IF_ERROR(
        ScanAll(store, Table::kDeadlines, kWholeTable, [&](auto key, auto value) -> Status {
          auto deadline = Deadline::Decode(key, value);
          if (!deadline.ok()) return deadline.status();
          deadline.value().time_ms += part.later_ms;
          deadline.value().number = next_deadline_++;
          return out_.Put(Table::kDeadlines, deadline.value().Key(), deadline.value().Encode());
        }));
    return ScanAll(store, Table::kImported, kWholeTable, [&](auto key, auto value) {
      return out_.Put(Table::kImported, key, std::string(value));
    });
  }

  // Small records are put together in memory.
  Status TakeMeta(const Part& part, const store::Store& store) {
    CODBAND_RETURN_IF_ERROR(ScanAll(store, Table::kMeta, kWholeTable, [&](auto key, auto value) {
      return TakeMetaRecord(part, key, value);
    }));
    return ScanAll(store, Table::kCheckpoint, WithPrefix(GroupSeries::kPrefix),
                   [&](auto key, auto value) { return TakeGroups(key, value); });
  }

  Status TakeMetaRecord(const Part& part, std::string_view key, std::string_view value) {
    if (key.starts_with(ActivitySeries::kPrefix)) {
      const auto activity = DecodeActivity(value);
      if (activity.ok()) activity_[std::string(key)] += activity.value();  // as it is shown
    } else if (key.starts_with(PendingDecisions::kForgottenPrefix)) {
      const auto time = ReadNumberKey(value);
      if (!time.ok()) return time.status();
      meta_[std::string(key)] = NumberKey(time.value() + static_cast<std::uint64_t>(part.later_ms));
    } else if (IsQuarantineKey(key)) {
      auto entry = DecodeQuarantined(value);
      if (entry.ok()) quarantine_.push_back(std::move(entry).value());
    } else if (key == kDroppedUsersKey) {
      const auto dropped = ReadNumberKey(value);
      dropped_users_ += dropped.ok() ? dropped.value() : 0;
    } else if (key.starts_with(Sightings::kPrefix)) {
      meta_.emplace(key, value);  // where two have a slot, the first has it
    } else if (key.starts_with(Eraser::kPrefix)) {
      meta_.emplace(key, value);
    }
    return {};
  }

  // How users are spread over groups every partition knows of all.
  Status TakeGroups(std::string_view key, std::string_view value) {
    if (key == GroupSeries::kLastKey) {
      last_minute_ = std::max(last_minute_, std::string(value));
      return {};
    }
    auto activity = DecodeGroups(value);
    if (!activity.ok()) return {};
    GroupActivity& all = groups_[std::string(key)];
    all.changes += activity.value().changes;
    all.users += activity.value().users;
    if (!all.groups.empty()) return {};
    all.groups = std::move(activity.value().groups);
    for (auto& [model, users] : all.groups) model = joining_->NameOf(model);
    return {};
  }

  Status WriteMeta() {
    meta_[std::string(Identity::kKey)] = parts_[0].identity.Encode();
    meta_[std::string(ClockRecord::kKey)] = clock_.Encode();
    if (dropped_users_ > 0) meta_[kDroppedUsersKey] = NumberKey(dropped_users_);
    for (const auto& [key, activity] : activity_) meta_[key] = EncodeActivity(activity);
    // Entries get numbers of a log that nobody has: what they are about has been left out.
    std::ranges::stable_sort(quarantine_, {}, &QuarantinedEntry::time_ms);
    std::uint64_t next = 1;
    for (QuarantinedEntry& entry : quarantine_) {
      const std::uint64_t length = entry.last - entry.first;
      entry.first = next;
      entry.last = next + length;
      next = entry.last + 1;
      meta_[QuarantineKey(entry.first)] = EncodeQuarantined(entry);
    }
    sequence_ = std::max(sequence_, next);
    for (auto& [key, value] : meta_) {
      CODBAND_RETURN_IF_ERROR(out_.Put(Table::kMeta, key, std::move(value)));
    }
    return {};
  }

  Status WriteCheckpoint() {
    CheckpointRecord record{.spec = parts_[0].checkpoint.spec,
                            .sequence = sequence_,
                            .users = 0,
                            .changes = 0,
                            .recent = {},
                            .shared = joining_->Finish()};
    ColumnBook columns = std::move(parts_[widest_].columns);
    for (const Part& part : parts_) {
      record.users += part.checkpoint.users;
      record.changes += part.checkpoint.changes;
      for (Change change : part.checkpoint.recent) {
        change.from = joining_->NameOf(change.from);
        change.to = joining_->NameOf(change.to);
        record.recent.push_back(std::move(change));
      }
      if (part.number != widest_) CODBAND_RETURN_IF_ERROR(columns.Add(part.columns));
    }
    std::ranges::stable_sort(record.recent, {}, &Change::time_ms);
    if (record.recent.size() > kMostRecent) {
      record.recent.erase(record.recent.begin(), record.recent.end() - kMostRecent);
    }
    if (parts_[0].identity.dim == 0) {
      ByteWriter bytes;
      columns.Save(bytes);
      record.columns = bytes.Take();
    }
    const std::string bytes = record.Encode();
    CODBAND_RETURN_IF_ERROR(out_.Put(Table::kCheckpoint, CheckpointRecord::kKey, bytes));
    for (const auto& [key, activity] : groups_) {
      CODBAND_RETURN_IF_ERROR(out_.Put(Table::kCheckpoint, key, EncodeGroups(activity)));
    }
    if (!last_minute_.empty()) {
      CODBAND_RETURN_IF_ERROR(out_.Put(Table::kCheckpoint, GroupSeries::kLastKey, last_minute_));
    }
    CODBAND_RETURN_IF_ERROR(out_.Put(Table::kCheckpointCopy, CheckpointRecord::kKey, bytes));
    return out_.Put(Table::kCheckpointCopy, Identity::kKey, parts_[0].identity.Encode());
  }

  const OpenPartition& open_;
  std::vector<Part> parts_;
  TableWriter out_;
  std::uint32_t farthest_ = 0;  // along the loop's catalogue
  std::uint32_t widest_ = 0;    // which has the most columns
  std::uint64_t sequence_ = 0;
  ClockRecord clock_;  // the one that is ahead
  std::unique_ptr<SharedPool::Joining> joining_;
  std::uint64_t next_deadline_ = 0;
  std::map<std::string, std::string> meta_;
  std::map<std::string, Activity> activity_;
  std::map<std::string, GroupActivity> groups_;
  std::string last_minute_;
  std::vector<QuarantinedEntry> quarantine_;
  std::uint64_t dropped_users_ = 0;
};

}  // namespace

Status JoinStores(std::uint32_t partitions, const OpenPartition& open, store::Store& whole) {
  return Joiner(partitions, open, whole).Run();
}

}  // namespace codband::engine
