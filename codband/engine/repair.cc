#include "codband/engine/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/engine/learner.h"
#include "codband/engine/records.h"
#include "codband/policy/registry.h"
#include "codband/store/rocksdb_open.h"
#include "codband/store/rocksdb_repair.h"
#include "codband/store/rocksdb_store.h"

namespace codband::engine {
namespace {

namespace fs = std::filesystem;
using store::StoreBatch;
using store::Table;

constexpr std::size_t kCopiedAtOnce = 1000;

// Writes many changes in batches of bearable size.
class Batches {
 public:
  explicit Batches(store::Store& store) : store_(store) {}

  void Put(Table table, std::string_view key, std::string value) {
    batch_.Put(table, std::string(key), std::move(value));
    if (batch_.entries().size() >= kCopiedAtOnce) Flush();
  }
  void PutCheckpoint(const CheckpointRecord& record) {
    CheckpointRecord::Put(record.Encode(), batch_);
  }
  void Delete(Table table, std::string key) { batch_.Delete(table, std::move(key)); }
  void DeleteAll(Table table) {
    batch_.DeleteRange(table, {}, std::string(2 * kMaxIdBytes, '\xff'));
  }
  Status Finish() {
    Flush();
    return status_;
  }

 private:
  void Flush() {
    if (status_.ok()) status_ = store_.Write(batch_, false);
    batch_.Clear();
  }

  store::Store& store_;
  StoreBatch batch_;
  Status status_;
};

std::string RowName(Table table, const std::string& key) {
  return fmt::format("record '{}' of table '{}'", store::KeyText(key), store::TableName(table));
}

// Makes one whole of what was read: see RepairData.
class Tidying {
 public:
  Tidying(store::Store& store, RepairReport& report) : store_(store), report_(report) {}

  Status Run() {
    CODBAND_RETURN_IF_ERROR(ReadCheckpoint());
    CODBAND_RETURN_IF_ERROR(MendIdentity());
    if (!checkpoint_) {
      bool learned = false;
      for (const Table table : {Table::kLog, Table::kUsers, Table::kPeople}) {
        CODBAND_RETURN_IF_ERROR(store_.Scan(table, {}, {}, [&](auto, auto) {
          learned = true;
          return false;
        }));
      }
      return learned || checkpoint_lost_ ? DropLearned() : Status();
    }
    CODBAND_RETURN_IF_ERROR(DropHalfUsers());
    CODBAND_RETURN_IF_ERROR(CloseGapsInLog());
    return MendDeadlines();
  }

  Status DropLearned() {
    report_.drops.push_back(
        "everything that was learned: users, models and pending decisions; the catalogue is kept");
    Batches changes(store_);
    for (const Table table :
         {Table::kLog, Table::kUsers, Table::kPeople, Table::kCheckpoint, Table::kCheckpointCopy,
          Table::kPending, Table::kDeadlines, Table::kImported}) {
      changes.DeleteAll(table);
    }
    return changes.Finish();
  }

 private:
  Status ReadCheckpoint() {
    auto record = CheckpointRecord::Get(store_);
    if (record.ok()) {
      checkpoint_ = std::move(record).value();
    } else if (record.status().code() == StatusCode::kCorruption) {
      checkpoint_lost_ = true;
    } else if (record.status().code() != StatusCode::kNotFound) {
      return record.status();
    }
    return {};
  }

  // The number of features is that of the items, or of what was learned.
  Status MendIdentity() {
    std::string bytes;
    if (store_.Get(Table::kMeta, Identity::kKey, bytes).ok() && Identity::Decode(bytes).ok()) {
      dim_ = Identity::Decode(bytes).value().dim;
      return {};
    }
    if (store_.Get(Table::kCheckpointCopy, Identity::kKey, bytes).ok() &&
        Identity::Decode(bytes).ok()) {
      dim_ = Identity::Decode(bytes).value().dim;
      Batches changes(store_);
      changes.Put(Table::kMeta, Identity::kKey, bytes);
      return changes.Finish();
    }
    if (checkpoint_ && !checkpoint_->columns.empty()) {
      report_.drops.push_back("the facts about the directory; made anew");
      Batches changes(store_);
      changes.Put(Table::kMeta, Identity::kKey,
                  Identity{.dim = 0, .created_ms = 0, .version = std::string(kVersion)}.Encode());
      return changes.Finish();
    }
    std::size_t dim = 0;
    CODBAND_RETURN_IF_ERROR(store_.Scan(Table::kItems, {}, {}, [&](auto, std::string_view value) {
      const auto item = DecodeItem(value);
      if (item.ok()) dim = item.value().features.size();
      return dim == 0;
    }));
    CODBAND_RETURN_IF_ERROR(store_.Scan(Table::kPending, {}, {}, [&](auto, std::string_view value) {
      const auto pending = PendingDecision::Decode(value);
      if (dim == 0 && pending.ok()) dim = pending.value().decision.features.size();
      return dim == 0;
    }));
    Batches changes(store_);
    changes.Delete(Table::kMeta, std::string(Identity::kKey));
    if (dim > 0) {
      report_.drops.push_back(fmt::format(
          "the facts about the directory; made anew, with {} features as the records have", dim));
      const Identity identity{.dim = dim, .created_ms = 0, .version = std::string(kVersion)};
      changes.Put(Table::kMeta, Identity::kKey, identity.Encode());
      dim_ = dim;
    } else if (checkpoint_ || checkpoint_lost_) {
      report_.drops.push_back("the facts about the directory: it starts anew");
      checkpoint_.reset();
      checkpoint_lost_ = true;
    }
    return changes.Finish();
  }

  Status DropHalfUsers() {
    std::set<UserId> records;
    CODBAND_RETURN_IF_ERROR(store_.Scan(Table::kUsers, {}, {}, [&](std::string_view key, auto) {
      records.insert(ReadNumberKey(key).value());
      return true;
    }));
    std::map<UserId, std::string> people;
    CODBAND_RETURN_IF_ERROR(
        store_.Scan(Table::kPeople, {}, {}, [&](std::string_view key, std::string_view value) {
          ByteReader in(value);
          Person person;
          person.Load(in);
          people[ReadNumberKey(key).value()] = person.name;
          return true;
        }));
    const auto policy = MakePolicy(checkpoint_->spec, {.dim = dim_ != 0 ? dim_ : kFirstDim});
    const bool paged = policy.ok() && policy.value()->paged_users() != nullptr;
    Batches changes(store_);
    for (const auto& [user, name] : people) {
      if (!paged || records.contains(user)) continue;
      Drop(user, fmt::format("user '{}'", name), changes);
    }
    // What was learned of them stays; name and history start anew with their next reward.
    for (const UserId user : records) {
      if (people.contains(user)) continue;
      report_.drops.push_back(fmt::format("name and history of a user ({:016x})", user));
    }
    checkpoint_->users = people.size() - dropped_.size();
    changes.PutCheckpoint(*checkpoint_);  // one of its copies may be missing
    if (!dropped_.empty()) {
      changes.Put(Table::kMeta, kDroppedUsersKey, NumberKey(dropped_.size()));
    }
    return changes.Finish();
  }

  void Drop(UserId user, const std::string& text, Batches& changes) {
    dropped_.insert(user);
    report_.drops.push_back(text);
    changes.Delete(Table::kUsers, NumberKey(user));
    changes.Delete(Table::kPeople, NumberKey(user));
  }

  Status CloseGapsInLog() {
    std::uint64_t expected = checkpoint_->sequence + 1;
    std::uint64_t place = expected;  // of the next entry that is kept
    std::vector<std::pair<std::string, std::string>> moved;
    Batches changes(store_);
    const Status read = store_.Scan(
        Table::kLog, NumberKey(expected), {}, [&](std::string_view key, std::string_view value) {
          const std::uint64_t sequence = ReadNumberKey(key).value();
          if (sequence > expected) {
            report_.drops.push_back(fmt::format(
                "log entries {} to {}: rewards that were not learned yet", expected, sequence - 1));
          }
          expected = sequence + 1;
          if (!LogRecord::Decode(value).ok()) {
            report_.drops.push_back(fmt::format("log entry {}", sequence));
            changes.Delete(Table::kLog, std::string(key));
            return true;
          }
          if (sequence != place) {
            changes.Delete(Table::kLog, std::string(key));
            moved.emplace_back(NumberKey(place), value);
          }
          ++place;
          return true;
        });
    CODBAND_RETURN_IF_ERROR(read);
    for (auto& [key, value] : moved) changes.Put(Table::kLog, key, std::move(value));
    return changes.Finish();
  }

  // A decision of a dropped user goes with them; one whose deadline is lost gets another.
  Status MendDeadlines() {
    std::set<std::string> timed;
    std::uint64_t number = 0;
    Batches changes(store_);
    CODBAND_RETURN_IF_ERROR(
        store_.Scan(Table::kDeadlines, {}, {}, [&](std::string_view key, std::string_view value) {
          const auto deadline = Deadline::Decode(key, value);
          if (!deadline.ok()) {
            changes.Delete(Table::kDeadlines, std::string(key));
            return true;
          }
          number = std::max(number, deadline.value().number + 1);
          timed.insert(deadline.value().event_ids.begin(), deadline.value().event_ids.end());
          return true;
        }));
    CODBAND_RETURN_IF_ERROR(
        store_.Scan(Table::kPending, {}, {}, [&](std::string_view key, std::string_view value) {
          const auto pending = PendingDecision::Decode(value);
          const auto user = pending.ok() ? pending.value().user_id() : std::nullopt;
          if (!pending.ok() || (user && dropped_.contains(*user))) {
            report_.drops.push_back(fmt::format("decision '{}'", key));
            changes.Delete(Table::kPending, std::string(key));
          } else if (!timed.contains(std::string(key))) {
            const Deadline deadline{.time_ms = pending.value().deadline_ms,
                                    .number = number++,
                                    .event_ids = {std::string(key)}};
            changes.Put(Table::kDeadlines, deadline.Key(), deadline.Encode());
          }
          return true;
        }));
    return changes.Finish();
  }

  store::Store& store_;
  RepairReport& report_;
  std::uint64_t dim_ = 0;
  std::optional<CheckpointRecord> checkpoint_;
  bool checkpoint_lost_ = false;
  std::set<UserId> dropped_;
};

// Copies what can be read.
Status CopySound(const store::Store& from, store::Store& to, RepairReport& report) {
  Batches changes(to);
  for (std::size_t i = 0; i < store::kTableCount; ++i) {
    const Table table = static_cast<Table>(i);
    std::vector<store::Store::Lost> lost;
    CODBAND_RETURN_IF_ERROR(from.ScanPastDamage(
        table,
        [&](std::string_view key, std::string_view value) {
          changes.Put(table, key, std::string(value));
          return true;
        },
        lost));
    for (const auto& range : lost) {
      report.damage.push_back(store::LostText(table, range));
      const bool named_later = table == Table::kUsers || table == Table::kPeople ||
                               table == Table::kCheckpoint || table == Table::kCheckpointCopy;
      for (const std::string& key : range.keys) {
        if (!named_later) report.drops.push_back(RowName(table, key));
      }
      if (range.keys.empty() && !named_later) {
        report.drops.push_back(fmt::format("what was only between '{}' and '{}' of table '{}'",
                                           store::KeyText(range.from), store::KeyText(range.up_to),
                                           store::TableName(table)));
      }
    }
  }
  return changes.Finish();
}

// Whether the models are the sums of their users.
bool AddsUp(const fs::path& directory) {
  auto store = store::OpenRocksDbStore(directory, {.read_only = true});
  if (!store.ok()) return false;
  const auto checkpoint = CheckpointRecord::Get(*store.value());
  if (!checkpoint.ok()) return true;
  EngineOptions options;
  options.read_only = true;
  options.policy = checkpoint.value().spec;
  const auto engine = Engine::Open(std::move(store).value(), options);
  return engine.ok() && engine.value()->Check().ok();
}

Status Swap(const fs::path& directory, const fs::path& fresh, RepairReport& report) {
  fs::path aside = directory / "rocksdb.damaged";
  for (int i = 2; fs::exists(aside); ++i) aside = directory / fmt::format("rocksdb.damaged-{}", i);
  std::error_code error;
  fs::rename(directory / "rocksdb", aside, error);
  if (!error) fs::rename(fresh / "rocksdb", directory / "rocksdb", error);
  if (error) {
    return Status::IoError(fmt::format("cannot put {} in the place of {}: {}",
                                       (fresh / "rocksdb").string(),
                                       (directory / "rocksdb").string(), error.message()));
  }
  report.kept_aside = aside.string();
  return SyncDirectory(directory);
}

}  // namespace

Result<RepairReport> RepairData(const fs::path& directory, bool apply) {
  RepairReport report;
  const fs::path work = directory / "repair";
  std::error_code ignored;
  fs::remove_all(work, ignored);
  const auto run = [&]() -> Status {
    bool made_anew = false;
    auto damaged = store::OpenDamagedStore(directory, work / "damaged", report.damage, made_anew);
    if (!damaged.ok()) return damaged.status();
    {
      auto fresh = store::OpenRocksDbStore(work / "fresh");
      if (!fresh.ok()) return fresh.status();
      if (!report.damage.empty()) {
        report.drops.push_back(
            "changes that only the damaged files named above held, if any: rewards not learned "
            "yet, "
            "decisions, items");
      }
      CODBAND_RETURN_IF_ERROR(CopySound(*damaged.value(), *fresh.value(), report));
      CODBAND_RETURN_IF_ERROR(Tidying(*fresh.value(), report).Run());
    }
    if (made_anew && !AddsUp(work / "fresh")) {
      auto fresh = store::OpenRocksDbStore(work / "fresh");
      if (!fresh.ok()) return fresh.status();
      CODBAND_RETURN_IF_ERROR(Tidying(*fresh.value(), report).DropLearned());
    }
    const bool needed = !report.damage.empty() || !report.drops.empty();
    return apply && needed ? Swap(directory, work / "fresh", report) : Status();
  };
  const Status status = run();
  fs::remove_all(work, ignored);
  if (!status.ok()) return status;
  return report;
}

}  // namespace codband::engine
