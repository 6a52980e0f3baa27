// Records of the learner: what was learned up to a checkpoint, people, and what is in quarantine.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "codband/engine/record_codec.h"
#include "codband/engine/records.h"

namespace codband::engine {

namespace {

constexpr std::string_view kQuarantinePrefix = "quarantine/";

}  // namespace

std::string QuarantineKey(std::uint64_t first) {
  return std::string(kQuarantinePrefix) + NumberKey(first);
}

bool IsQuarantineKey(std::string_view key) { return key.starts_with(kQuarantinePrefix); }

std::string EncodeQuarantined(const QuarantinedEntry& entry) {
  ByteWriter out;
  out.U64(entry.first);
  out.U64(entry.last);
  SaveTime(out, entry.time_ms);
  out.String(entry.reason);
  out.U8(entry.forgets ? 1 : 0);
  out.String(entry.user);
  out.U64(entry.event);
  out.Double(entry.reward);
  return out.Take();
}

Result<QuarantinedEntry> DecodeQuarantined(std::string_view bytes) {
  return DecodeWith<QuarantinedEntry>(bytes, [](ByteReader& in, QuarantinedEntry& entry) {
    entry.first = in.U64("first log entry");
    entry.last = in.U64("last log entry");
    if (entry.last < entry.first) in.Fail("last log entry", "comes before the first");
    entry.time_ms = LoadTime(in, "time");
    entry.reason = in.String("reason");
    entry.forgets = in.U8("whether it forgets") != 0;
    entry.user = in.String("user");
    entry.event = in.U64("event");
    entry.reward = in.Double("reward");
  });
}

void Person::AddMove(const Move& move) {
  if (moves.size() == kMostChanges) moves.erase(moves.begin());
  moves.push_back(move);
}

void Person::AddTick(std::int64_t time_ms, double reward, double expected) {
  if (ticks.size() == kMostTicks) {
    constexpr float kSlowest = 1.0F / 32;
    ++older;
    usual += std::max(kSlowest, 1 / static_cast<float>(older)) * (ticks.front().reward - usual);
    ticks.erase(ticks.begin());
  }
  if (ticks.capacity() == 0) ticks.reserve(kMostTicks);
  // What is read back must be finite.
  ticks.push_back({.time_s = static_cast<std::uint32_t>(time_ms / 1000),
                   .reward = static_cast<float>(reward),
                   .expected = std::isfinite(expected) ? static_cast<float>(expected) : 0});
}

Evidence Person::LastEvidence() const {
  Evidence evidence{.rewards = static_cast<std::uint32_t>(ticks.size())};
  if (ticks.empty()) return evidence;
  for (const Tick& tick : ticks) {
    evidence.expected += tick.expected;
    evidence.got += tick.reward;
  }
  evidence.expected /= static_cast<float>(evidence.rewards);
  evidence.got /= static_cast<float>(evidence.rewards);
  evidence.before = older > 0 ? usual : evidence.got;
  return evidence;
}

void Person::Save(ByteWriter& out) const {
  out.String(name);
  out.U64(observations);
  SaveTime(out, first_ms);
  out.U64(moves.size());  // once the number of all changes; nothing reads it
  out.U64(moves.size());
  for (const Move& move : moves) {
    SaveTime(out, move.time_ms);
    out.U64(move.from);
    out.U64(move.to);
  }
  for (const Move& move : moves) {
    out.U32(move.evidence.rewards);
    out.Floats(std::array{move.evidence.expected, move.evidence.got, move.evidence.before});
  }
  out.U64(ticks.size());
  for (const Tick& tick : ticks) {
    out.U32(tick.time_s);
    out.Floats(std::array{tick.reward, tick.expected});
  }
  out.Floats(std::array{usual});
  out.U32(older);
  out.U64(columns.size());
  for (const ColumnShare& share : columns) {
    out.U32(share.column);
    out.U32(share.count);
    out.Double(share.sum);
    out.Double(share.squares);
  }
}

void Person::Load(ByteReader& in) {
  name = in.String("name");
  observations = in.U64("observations");
  first_ms = LoadTime(in, "time of the first reward");
  in.U64("number of changes");
  const std::size_t count = in.Count("number of remembered changes", 24);
  moves.clear();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Move& move = moves.emplace_back();
    move.time_ms = LoadTime(in, "time of a change");
    move.from = in.U64("model before");
    move.to = in.U64("model after");
  }
  ticks.clear();
  usual = 0;
  older = 0;
  columns.clear();
  if (in.remaining() == 0) return;  // of a version without what follows
  for (Move& move : moves) {
    std::array<float, 3> means{};
    move.evidence.rewards = in.U32("number of rewards before a change");
    in.Floats("means before a change", means);
    move.evidence.expected = means[0];
    move.evidence.got = means[1];
    move.evidence.before = means[2];
  }
  const std::size_t last = in.Count("number of last rewards", 12);
  if (last > 0) ticks.reserve(kMostTicks);
  for (std::size_t i = 0; i < last && in.ok(); ++i) {
    const std::uint32_t time_s = in.U32("time of a reward");
    std::array<float, 2> pair{};
    in.Floats("reward and its expectation", pair);
    ticks.push_back({.time_s = time_s, .reward = pair[0], .expected = pair[1]});
  }
  std::array<float, 1> mean{};
  in.Floats("usual reward", mean);
  usual = mean[0];
  older = in.U32("number of older rewards");
  if (in.remaining() == 0) return;  // of a version without what follows
  const std::size_t shares = in.Count("number of columns of a user", 24);
  for (std::size_t i = 0; i < shares && in.ok(); ++i) {
    ColumnShare& share = columns.emplace_back();
    share.column = in.U32("column of a user");
    share.count = in.U32("uses of a column by a user");
    share.sum = in.Double("sum of a column of a user");
    share.squares = in.Double("squares of a column of a user");
    if (i > 0 && columns[i - 1].column >= share.column) {
      in.Fail("columns of a user", "are not in order");
    }
  }
}

std::string CheckpointRecord::Encode() const {
  ByteWriter out;
  out.String(spec);
  out.U64(sequence);
  out.U64(users);
  out.U64(changes);
  out.U64(recent.size());
  for (const Change& change : recent) {
    out.String(change.user);
    SaveTime(out, change.time_ms);
    out.U64(change.from);
    out.U64(change.to);
  }
  out.String(shared);
  if (!columns.empty()) out.String(columns);
  return out.Take();
}

Result<CheckpointRecord> CheckpointRecord::Decode(std::string_view bytes) {
  return DecodeWith<CheckpointRecord>(bytes, [](ByteReader& in, CheckpointRecord& record) {
    record.spec = in.String("policy");
    record.sequence = in.U64("sequence");
    record.users = in.U64("number of users");
    record.changes = in.U64("number of changes");
    const std::size_t count = in.Count("number of recent changes", 32);
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      Change& change = record.recent.emplace_back();
      change.user = in.String("user");
      change.time_ms = LoadTime(in, "time of a change");
      change.from = in.U64("model before");
      change.to = in.U64("model after");
    }
    record.shared = in.String("shared state");
    if (in.remaining() == 0) return;
    record.columns = in.String("columns");
    if (record.columns.empty()) in.Fail("columns", "are none");
  });
}

void CheckpointRecord::Put(std::string bytes, store::StoreBatch& batch) {
  batch.Put(store::Table::kCheckpointCopy, std::string(kKey), bytes);
  batch.Put(store::Table::kCheckpoint, std::string(kKey), std::move(bytes));
}

Result<CheckpointRecord> CheckpointRecord::Get(const store::Store& store) {
  const auto read = [&](store::Table table) -> Result<CheckpointRecord> {
    std::string bytes;
    CODBAND_RETURN_IF_ERROR(store.Get(table, kKey, bytes));
    auto record = Decode(bytes);
    if (record.ok()) return record;
    return Status::Corruption("the checkpoint cannot be read: " + record.status().message());
  };
  auto record = read(store::Table::kCheckpoint);
  if (record.ok()) return record;
  auto copy = read(store::Table::kCheckpointCopy);
  return copy.ok() ? std::move(copy) : std::move(record);
}

}  // namespace codband::engine
