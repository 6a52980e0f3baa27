#include "codband/server/admin/findings.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <memory>

#include "codband/base/bytes.h"
#include "codband/base/text.h"
#include "codband/engine/column_book.h"
#include "codband/engine/engine.h"
#include "codband/engine/records.h"
#include "codband/engine/repair.h"
#include "codband/server/admin/data_directory.h"
#include "codband/store/rocksdb_open.h"
#include "codband/store/store.h"

namespace codband::server {
namespace {

struct TableName {
  store::Table table;
  const char* part;
  const char* what;
};
constexpr TableName kTables[] = {
    {store::Table::kItems, "catalogue", "items"},
    {store::Table::kUsers, "users", "users as of the checkpoint"},
    {store::Table::kPeople, "histories", "ids and histories of users"},
    {store::Table::kPending, "decisions", "decisions, pending or recently settled"},
    {store::Table::kDeadlines, "deadlines", "ends of waits for a reward"},
    {store::Table::kImported, "imports", "events of the past that were learned"},
};

std::string Count(std::uint64_t number) { return GroupThousands(number); }

std::string Size(std::uint64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10))
                           : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string Time(std::int64_t ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(ms / 1000)));
}

// What a part contains, or what is wrong with it.
Finding Look(const char* part, const Result<std::string>& result) {
  return {.part = part,
          .sound = result.ok(),
          .text = result.ok() ? result.value() : result.status().message()};
}

Result<std::string> LookAtIdentity(const store::Store& store) {
  std::string bytes;
  CODBAND_RETURN_IF_ERROR(store.Get(store::Table::kMeta, engine::Identity::kKey, bytes));
  const auto identity = engine::Identity::Decode(bytes);
  if (!identity.ok()) return identity.status();
  const std::uint64_t dim = identity.value().dim;
  const std::string features =
      dim == 0 ? "a column for every name" : fmt::format("{} features", dim);
  return fmt::format("format {}, {}, created {} by codband {}", identity.value().format(), features,
                     Time(identity.value().created_ms), identity.value().version);
}

Result<std::string> LookAtCheckpoint(const store::Store& store, std::uint64_t& sequence) {
  const auto checkpoint = engine::CheckpointRecord::Get(store);
  if (!checkpoint.ok() && checkpoint.status().code() == StatusCode::kNotFound) {
    return std::string("none yet");
  }
  if (!checkpoint.ok()) return checkpoint.status();
  sequence = checkpoint.value().sequence;
  const std::string& spec = checkpoint.value().spec;
  std::string text =
      fmt::format("policy {}, up to log entry {}, {} users, {} changes detected",
                  spec.substr(0, spec.find(':')), Count(sequence), Count(checkpoint.value().users),
                  Count(checkpoint.value().changes));
  if (checkpoint.value().columns.empty()) return text;
  engine::ColumnBook columns;
  ByteReader in(checkpoint.value().columns);
  columns.Load(in);
  if (!in.ok()) return in.status();
  const features::ColumnSpace& space = columns.space();
  text += fmt::format(", {} columns ({} crossings)", Count(space.own()), Count(space.crossings()));
  if (space.shares()) {
    text +=
        fmt::format("; {}{} names share {} more, as features.max_columns is used up",
                    Count(space.sharers().size()),
                    space.sharers().size() == features::ColumnSpace::kMostSharers ? " or more" : "",
                    space.shared_columns());
  }
  return text;
}

Result<std::string> LookAtLog(const store::Store& store, std::uint64_t checkpoint) {
  std::uint64_t entries = 0;
  std::uint64_t after = 0;
  std::uint64_t bytes = 0;
  Status damaged;
  CODBAND_RETURN_IF_ERROR(store.Scan(store::Table::kLog, {}, {}, [&](auto key, auto value) {
    const auto sequence = engine::ReadNumberKey(key);
    if (!sequence.ok()) {
      damaged = sequence.status();
      return false;
    }
    ++entries;
    after += sequence.value() > checkpoint ? 1 : 0;
    bytes += key.size() + value.size();
    return true;
  }));
  CODBAND_RETURN_IF_ERROR(damaged);
  return fmt::format("{} entries ({}), {} of them after the checkpoint", Count(entries),
                     Size(bytes), Count(after));
}

Result<std::string> LookAtTable(const store::Store& store, const TableName& name) {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::vector<store::Store::Lost> lost;
  const auto count = [&](std::string_view key, std::string_view value) {
    ++entries;
    bytes += key.size() + value.size();
    return true;
  };
  CODBAND_RETURN_IF_ERROR(store.ScanPastDamage(name.table, count, lost));
  if (!lost.empty()) {
    std::string text = fmt::format("{} {} can be read", Count(entries), name.what);
    for (const auto& range : lost) text += "; " + store::LostText(name.table, range);
    return Status::Corruption(text);
  }
  return fmt::format("{} {} ({})", Count(entries), name.what, Size(bytes));
}

// How many users a repair has dropped.
std::uint64_t DroppedUsers(const store::Store& store) {
  std::string bytes;
  if (!store.Get(store::Table::kMeta, engine::kDroppedUsersKey, bytes).ok()) return 0;
  const auto count = engine::ReadNumberKey(bytes);
  return count.ok() ? count.value() : 0;
}

Result<std::string> LookAtModels(const std::filesystem::path& data, std::uint64_t dropped_users,
                                 std::vector<engine::QuarantinedEntry>& quarantined) {
  try {
    auto engine = OpenDataForReading(data);
    if (!engine.ok()) return engine.status();
    quarantined = engine.value()->Quarantined();
    const Status sums = engine.value()->Check();
    if (!sums.ok() && dropped_users > 0) {
      return fmt::format("models keep what they learned from {} users whom a repair has dropped",
                         Count(dropped_users));
    }
    CODBAND_RETURN_IF_ERROR(sums);
    const engine::EngineStats stats = engine.value()->Stats();
    return fmt::format("{} models add up to their {} users", Count(stats.models),
                       Count(stats.users));
  } catch (const std::exception& error) {
    // What was read back broke an invariant: the data is not sound.
    return Status::Corruption(error.what());
  }
}

// One finding for each entry, the newest last. They are left out of what was learned, and the rest
// is sound without them.
constexpr std::size_t kMostListed = 50;

std::string Describe(const engine::QuarantinedEntry& entry) {
  std::string text = entry.first == entry.last
                         ? fmt::format("log entry {}", entry.first)
                         : fmt::format("log entries {} to {}", entry.first, entry.last);
  if (!entry.user.empty() && entry.forgets) {
    text += fmt::format(", to forget user '{}'", entry.user);
  } else if (!entry.user.empty()) {
    text += fmt::format(", reward {} of user '{}'", entry.reward, entry.user);
  }
  return fmt::format("{}, since {}: {}", text, Time(entry.time_ms), entry.reason);
}

void ListQuarantine(const std::vector<engine::QuarantinedEntry>& entries,
                    std::vector<Finding>& findings) {
  const std::size_t hidden = entries.size() - std::min(entries.size(), kMostListed);
  if (entries.empty()) findings.push_back({.part = "quarantine", .text = "empty"});
  if (hidden > 0) {
    findings.push_back({.part = "quarantine", .text = fmt::format("{} earlier ones", hidden)});
  }
  for (std::size_t i = hidden; i < entries.size(); ++i) {
    findings.push_back({.part = "quarantine", .text = Describe(entries[i])});
  }
}

std::string ServerText(const std::filesystem::path& data) {
  if (const auto server = FindRunningServer(data)) {
    return fmt::format("runs at {} (process {})", server->url, server->pid);
  }
  if (const auto note = ReadServerNote(data)) {
    return fmt::format("none answers; one at {} did not shut down cleanly", note->url);
  }
  return "none runs on it";
}

}  // namespace

Result<std::vector<Finding>> ExamineData(const std::filesystem::path& data) {
  auto store = OpenDataStore(data, {.create = false, .read_only = true});
  if (!store.ok() && store.status().code() != StatusCode::kCorruption) return store.status();
  std::vector<Finding> findings = {{.part = "server", .text = ServerText(data)}};
  if (!store.ok()) {
    findings.push_back({.part = "store", .sound = false, .text = store.status().message()});
    return findings;
  }
  const store::Store& tables = *store.value();
  const Status verified = tables.Verify();
  findings.push_back({.part = "store",
                      .sound = verified.ok(),
                      .text = verified.ok() ? fmt::format("{} on disk, checksums match",
                                                          Size(tables.Stats().disk_bytes))
                                            : verified.message()});
  std::uint64_t checkpoint = 0;
  findings.push_back(Look("identity", LookAtIdentity(tables)));
  findings.push_back(Look("checkpoint", LookAtCheckpoint(tables, checkpoint)));
  findings.push_back(Look("log", LookAtLog(tables, checkpoint)));
  for (const TableName& name : kTables) {
    findings.push_back(Look(name.part, LookAtTable(tables, name)));
  }
  std::vector<engine::QuarantinedEntry> quarantined;
  findings.push_back(Look("models", LookAtModels(data, DroppedUsers(tables), quarantined)));
  ListQuarantine(quarantined, findings);
  return findings;
}

Status CheckSound(const std::filesystem::path& data, const std::vector<Finding>& findings) {
  const auto broken = std::ranges::find(findings, false, &Finding::sound);
  if (broken == findings.end()) return {};
  return {StatusCode::kCheckFailed,
          fmt::format("{} is not sound: {}: {}; 'codband doctor --data {} --repair' tells what a "
                      "repair would drop",
                      data.string(), broken->part, broken->text, data.string())};
}

}  // namespace codband::server
