#include "codband/engine/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/engine/record_codec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace codband::engine {
namespace {

// The number of features has this bit if they are stored sparsely: the number of those that are not
// 0, then the index and the value of each.
constexpr std::uint64_t kSparse = std::uint64_t{1} << 63;
constexpr std::size_t kSparseBytes = sizeof(std::uint32_t) + sizeof(double);

// Of a record beside its features, unless names are long.
constexpr std::size_t kUsualBytes = 256;

void SaveFeatures(ByteWriter& out, std::span<const double> features) {
  const auto filled = static_cast<std::size_t>(
      std::ranges::count_if(features, [](double x) { return x != 0 || std::signbit(x); }));
  if (sizeof(std::uint64_t) + filled * kSparseBytes >= features.size() * sizeof(double)) {
    out.U64(features.size());
    return out.Doubles(features);
  }
  out.U64(features.size() | kSparse);
  out.U64(filled);
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] == 0 && !std::signbit(features[i])) continue;
    out.U32(static_cast<std::uint32_t>(i));
    out.Double(features[i]);
  }
}

void LoadFeatures(ByteReader& in, std::vector<double>& features) {
  constexpr std::string_view kField = "number of features";
  const std::uint64_t size = in.U64(kField);
  const bool sparse = (size & kSparse) != 0;
  const std::uint64_t count = size & ~kSparse;
  // Dense ones are there; of sparse ones there are no more than a policy can have.
  if (sparse ? count > kMaxFeatures : count > in.remaining() / sizeof(double)) {
    in.Fail(kField, fmt::format("is {}", count));
    return;
  }
  features.assign(count, 0.0);
  if (!sparse) return in.Doubles("features", features);
  const std::size_t filled = in.Count("number of features that are not 0", kSparseBytes);
  for (std::size_t i = 0; i < filled && in.ok(); ++i) {
    const std::uint32_t index = in.U32("index of a feature");
    const double value = in.Double("feature");
    if (index >= count) return in.Fail("index of a feature", fmt::format("is {}", index));
    features[index] = value;
  }
}

void SaveNamed(ByteWriter& out, const std::vector<features::NamedFeature>& named) {
  out.U64(named.size());
  for (const features::NamedFeature& feature : named) {
    out.String(feature.name);
    out.Double(feature.value);
  }
}

void LoadNamed(ByteReader& in, std::vector<features::NamedFeature>& named) {
  const std::size_t count = in.Count("number of named features", 16);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    features::NamedFeature& feature = named.emplace_back();
    feature.name = in.String("name of a feature");
    feature.value = in.Double("value of a feature");
  }
}

void SaveDecision(ByteWriter& out, const Decision& decision) {
  out.U64(decision.user);
  out.U32(decision.arm);
  SaveFeatures(out, decision.features);
  out.U64(decision.model);
  out.U32(decision.period);
  for (const double value : {decision.mean, decision.width, decision.score, decision.propensity}) {
    out.Double(value);
  }
}

void LoadDecision(ByteReader& in, Decision& decision) {
  decision.user = in.U64("decision's user");
  decision.arm = in.U32("decision's arm");
  LoadFeatures(in, decision.features);
  decision.model = in.U64("decision's model");
  decision.period = in.U32("decision's period");
  decision.mean = in.Double("decision's mean");
  decision.width = in.Double("decision's width");
  decision.score = in.Double("decision's score");
  decision.propensity = in.Double("decision's propensity");
}

// The item stands at the end of a record: those of a version without items, and decisions without
// one, have none.
void SaveItem(ByteWriter& out, const Decision& decision) {
  if (decision.item != kNoItem) out.U64(decision.item);
}

void LoadItem(ByteReader& in, Decision& decision) {
  decision.item = in.remaining() == 0 ? kNoItem : in.U64("decision's item");
}

// Whether to learn is the lowest bit of a byte that has no other if there are no facts.
enum FactBits : std::uint8_t {
  kLearnBit = 1,
  kFactsBit = 2,
  kAgreesBit = 4,
  kExploredBit = 8,
  kModeShift = 4,    // two bits
  kSourceShift = 6,  // two bits
};

void SaveFacts(ByteWriter& out, const PendingDecision& pending) {
  const DecisionFacts& facts = pending.facts;
  unsigned bits = pending.learn ? kLearnBit : 0;
  if (facts.offered == 0) return out.U8(static_cast<std::uint8_t>(bits));
  bits |= kFactsBit;
  if (facts.agrees) bits |= kAgreesBit;
  if (facts.explored) bits |= kExploredBit;
  bits |= static_cast<unsigned>(facts.mode) << kModeShift;
  bits |= static_cast<unsigned>(facts.source) << kSourceShift;
  out.U8(static_cast<std::uint8_t>(bits));
  out.U32(facts.offered);
  out.Double(facts.baseline_mean);
  out.Double(facts.uniform_mean);
}

void LoadFacts(ByteReader& in, PendingDecision& pending) {
  const unsigned bits = in.U8("whether to learn");
  pending.learn = (bits & kLearnBit) != 0;
  if ((bits & kFactsBit) == 0) return;
  DecisionFacts& facts = pending.facts;
  facts.agrees = (bits & kAgreesBit) != 0;
  facts.explored = (bits & kExploredBit) != 0;
  const unsigned mode = bits >> kModeShift & 3U;
  const unsigned source = bits >> kSourceShift & 3U;
  if (mode > 2 || source > 2)
    in.Fail("mode and source", fmt::format("are {} and {}", mode, source));
  facts.mode = static_cast<Mode>(mode);
  facts.source = static_cast<Source>(source);
  facts.offered = in.U32("number of actions");
  facts.baseline_mean = in.Double("expectation of the first action");
  facts.uniform_mean = in.Double("mean expectation");
}

template <typename Enum>
Enum LoadEnum(ByteReader& in, std::string_view field, Enum last) {
  const std::uint8_t value = in.U8(field);
  if (value > static_cast<std::uint8_t>(last)) in.Fail(field, fmt::format("is {}", value));
  return static_cast<Enum>(value);
}

}  // namespace

std::string NumberKey(std::uint64_t number) {
  std::string key(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) key[i] = static_cast<char>((number >> (56 - 8 * i)) & 0xff);
  return key;
}

Result<std::uint64_t> ReadNumberKey(std::string_view key) {
  if (key.size() != 8) {
    return Status::Corruption(fmt::format("a key has {} bytes, expected 8", key.size()));
  }
  std::uint64_t number = 0;
  for (const char byte : key) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

std::uint64_t HashEvent(std::string_view event_id) {
  return XXH3_64bits(event_id.data(), event_id.size());
}

std::uint32_t Identity::format() const { return (dim == 0 ? 2 : 1) + (name_secret ? 2 : 0); }

void Identity::Put(store::StoreBatch& batch) const {
  batch.Put(store::Table::kMeta, std::string(kKey), Encode());
  batch.Put(store::Table::kCheckpointCopy, std::string(kKey), Encode());
}

std::string ImportedKey(std::string_view event_id) {
  const XXH128_hash_t hash = XXH3_128bits(event_id.data(), event_id.size());
  return NumberKey(hash.high64) + NumberKey(hash.low64);
}

std::string Identity::Encode() const {
  ByteWriter out;
  out.U32(format());
  out.U64(dim);
  SaveTime(out, created_ms);
  out.String(version);
  if (name_secret) {
    out.U64(name_secret->low);
    out.U64(name_secret->high);
  }
  return out.Take();
}

Result<Identity> Identity::Decode(std::string_view bytes) {
  return DecodeWith<Identity>(bytes, [](ByteReader& in, Identity& identity) {
    const std::uint32_t format = in.U32("data format");
    if (format == 0 || format > kDataFormatVersion) {
      in.Fail("data format",
              fmt::format("is {}, this program reads 1 to {}", format, kDataFormatVersion));
    }
    identity.dim = in.U64("dimension");
    if ((identity.dim == 0) != (format % 2 == 0) || identity.dim > kMaxFeatures) {
      in.Fail("dimension", fmt::format("is {}", identity.dim));
    }
    identity.created_ms = LoadTime(in, "time of creation");
    identity.version = in.String("version");
    if (format <= 2) return;
    const std::uint64_t low = in.U64("secret");
    identity.name_secret = SipKey{.low = low, .high = in.U64("secret")};
  });
}

std::string ClockRecord::Encode() const {
  ByteWriter out;
  for (const std::int64_t time : {wait_ms, wall_ms, steady_ms}) SaveTime(out, time);
  out.String(boot_id);
  return out.Take();
}

Result<ClockRecord> ClockRecord::Decode(std::string_view bytes) {
  return DecodeWith<ClockRecord>(bytes, [](ByteReader& in, ClockRecord& record) {
    record.wait_ms = LoadTime(in, "wait clock");
    record.wall_ms = LoadTime(in, "wall clock");
    record.steady_ms = LoadTime(in, "steady clock");
    record.boot_id = in.String("name of the start");
  });
}

std::uint64_t FingerprintOf(const RankRequest& request) {
  // Each part is preceded by its length, so that no two requests give the same bytes.
  std::uint64_t hash = request.defer_activation ? 2 : 1;
  const auto add = [&](const void* data, std::size_t bytes) {
    hash = XXH3_64bits_withSeed(&bytes, sizeof(bytes), hash);
    hash = XXH3_64bits_withSeed(data, bytes, hash);
  };
  const auto add_named = [&](const std::vector<features::NamedFeature>& named) {
    for (const features::NamedFeature& feature : named) {
      add(feature.name.data(), feature.name.size());
      add(&feature.value, sizeof(double));
    }
  };
  add(request.user.data(), request.user.size());
  for (const Candidate& candidate : request.candidates) {
    add(candidate.id.data(), candidate.id.size());
    add(candidate.features.data(), candidate.features.size() * sizeof(double));
    // Where they have been hashed the numbers say it all.
    if (candidate.features.empty()) add_named(candidate.named);
  }
  add(nullptr, 0);
  for (const std::string& id : request.excluded) add(id.data(), id.size());
  if (!request.context_features.empty() || !request.user_features.empty()) {
    const std::uint64_t split = request.context_features.size();
    add(&split, sizeof(split));
    add_named(request.context_features);
    add_named(request.user_features);
  }
  return hash == 0 ? 1 : hash;
}

std::string PendingDecision::Encode() const {
  ByteWriter out;
  if (waits()) out.Reserve(kUsualBytes + decision.features.size() * sizeof(double));
  out.U8(static_cast<std::uint8_t>(state));
  SaveTime(out, deadline_ms);
  if (!waits()) return out.Take();
  SaveTime(out, time_ms);
  SaveFacts(out, *this);
  out.String(user);
  SaveDecision(out, decision);
  out.String(context);
  out.U64(candidates.size());
  for (const FinishedDecision::Candidate& candidate : candidates) {
    out.String(candidate.id);
    out.Double(candidate.probability);
    out.U64(candidate.features.size());
    out.Floats(candidate.features);
  }
  SaveTime(out, made_ms);
  out.U64(fingerprint);
  out.String(action);
  const bool named = std::ranges::any_of(
      candidates, [](const FinishedDecision::Candidate& each) { return !each.named.empty(); });
  if (!named && user_context.empty() && decision.item == kNoItem) return out.Take();
  out.String(user_context);
  for (const FinishedDecision::Candidate& candidate : candidates) SaveNamed(out, candidate.named);
  SaveItem(out, decision);
  return out.Take();
}

std::optional<PendingDecision::Waiting> PendingDecision::WaitingUser(std::string_view bytes) {
  if (!Waits(bytes)) return std::nullopt;
  ByteReader in(bytes);
  in.U8("state of the decision");
  LoadTime(in, "deadline");
  LoadTime(in, "time of the decision");
  PendingDecision ignored;
  LoadFacts(in, ignored);
  Waiting user{.name = in.String("user")};
  user.id = in.U64("decision's user");
  return in.ok() ? std::optional(std::move(user)) : std::nullopt;
}

bool PendingDecision::Waits(std::string_view bytes) {
  return !bytes.empty() && Waits(static_cast<State>(bytes[0]));
}

Result<PendingDecision> PendingDecision::Decode(std::string_view bytes) {
  return DecodeWith<PendingDecision>(bytes, [](ByteReader& in, PendingDecision& pending) {
    pending.state = LoadEnum(in, "state of the decision", State::kPast);
    pending.deadline_ms = LoadTime(in, "deadline");
    if (!pending.waits()) return;
    pending.time_ms = LoadTime(in, "time of the decision");
    LoadFacts(in, pending);
    pending.user = in.String("user");
    LoadDecision(in, pending.decision);
    pending.context = in.String("context");
    const std::size_t count = in.Count("number of candidates", 24);
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      FinishedDecision::Candidate& candidate = pending.candidates.emplace_back();
      candidate.id = in.String("candidate");
      candidate.probability = in.Double("probability");
      candidate.features.resize(in.Count("number of features", sizeof(float)));
      in.Floats("features", candidate.features);
    }
    pending.made_ms = pending.time_ms;
    if (in.remaining() == 0) return;  // of a version without what follows
    pending.made_ms = LoadTime(in, "time by the wait clock");
    pending.fingerprint = in.U64("fingerprint");
    pending.action = in.String("chosen action");
    if (in.remaining() == 0) return;  // there are neither names nor an item
    pending.user_context = in.String("features of the user");
    for (FinishedDecision::Candidate& each : pending.candidates) LoadNamed(in, each.named);
    LoadItem(in, pending.decision);
  });
}

std::string Deadline::Key() const {
  return NumberKey(static_cast<std::uint64_t>(time_ms)) + NumberKey(number);
}

std::string Deadline::Encode() const {
  ByteWriter out;
  out.U64(event_ids.size());
  for (const std::string& id : event_ids) out.String(id);
  return out.Take();
}

Result<Deadline> Deadline::Decode(std::string_view key, std::string_view value) {
  const Result<std::uint64_t> time = ReadNumberKey(key.substr(0, 8));
  if (!time.ok()) return time.status();
  const Result<std::uint64_t> number = ReadNumberKey(key.substr(8));
  if (!number.ok()) return number.status();
  Deadline deadline{.time_ms = static_cast<std::int64_t>(time.value()), .number = number.value()};
  ByteReader in(value);
  deadline.event_ids.resize(in.Count("number of events", sizeof(std::uint64_t)));
  for (std::string& id : deadline.event_ids) id = in.String("event id");
  in.ExpectEnd();
  if (!in.ok()) return in.status();
  return deadline;
}

std::string Deadline::KeyAfter(std::int64_t time_ms) {
  return NumberKey(static_cast<std::uint64_t>(time_ms) + 1);
}

std::string LogRecord::Encode() const {
  ByteWriter out;
  out.Reserve(kUsualBytes + decision.features.size() * sizeof(double));
  out.U8(static_cast<std::uint8_t>(kind));
  SaveTime(out, time_ms);
  out.String(user);
  if (kind == Kind::kForget) {
    if (decision.user == 0) return out.Take();
    out.U64(decision.user);
    out.U64(forgotten_columns.size());
    for (const std::uint32_t column : forgotten_columns) out.U32(column);
    return out.Take();
  }
  if (kind == Kind::kColumns) {
    out.U64(first_column);
    features::SaveAdditions(out, additions);
    return out.Take();
  }
  if (kind == Kind::kForgetItem) {
    SaveItem(out, decision);
    return out.Take();
  }
  if (kind == Kind::kPool) {
    out.String(pool);
    return out.Take();
  }
  out.U64(event);
  out.Double(reward);
  SaveDecision(out, decision);
  SaveItem(out, decision);
  return out.Take();
}

Result<LogRecord> LogRecord::Decode(std::string_view bytes) {
  return DecodeWith<LogRecord>(bytes, [](ByteReader& in, LogRecord& record) {
    record.kind = LoadEnum(in, "kind of log entry", Kind::kPool);
    record.time_ms = LoadTime(in, "time");
    record.user = in.String("user");
    if (record.kind == Kind::kForget) {
      if (in.remaining() == 0) return;  // of a version without what follows
      record.decision.user = in.U64("user's id");
      record.forgotten_columns.resize(in.Count("number of columns", sizeof(std::uint32_t)));
      for (std::uint32_t& column : record.forgotten_columns) column = in.U32("column");
      return;
    }
    if (record.kind == Kind::kColumns) {
      record.first_column = in.U64("first new column");
      record.additions = features::LoadAdditions(in);
      return;
    }
    if (record.kind == Kind::kForgetItem) return LoadItem(in, record.decision);
    if (record.kind == Kind::kPool) {
      record.pool = in.String("pool");
      return;
    }
    record.event = in.U64("event");
    record.reward = in.Double("reward");
    LoadDecision(in, record.decision);
    LoadItem(in, record.decision);
  });
}

std::string EncodeItem(const Item& item) {
  ByteWriter out;
  out.String(item.id);
  out.U64(item.features.size());
  out.Doubles(item.features);
  SaveNamed(out, item.named);
  out.U64(item.tags.size());
  for (const std::string& tag : item.tags) out.String(tag);
  return out.Take();
}

Result<Item> DecodeItem(std::string_view bytes) {
  return DecodeWith<Item>(bytes, [](ByteReader& in, Item& item) {
    item.id = in.String("id");
    item.features.resize(in.Count("number of features", sizeof(double)));
    in.Doubles("features", item.features);
    LoadNamed(in, item.named);
    const std::size_t tags = in.Count("number of tags", 8);
    for (std::size_t i = 0; i < tags && in.ok(); ++i) item.tags.push_back(in.String("tag"));
  });
}

}  // namespace codband::engine
