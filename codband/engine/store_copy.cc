#include "codband/engine/store_copy.h"

#include <utility>

#include "codband/base/clock.h"
#include "codband/engine/learner.h"
#include "codband/engine/quarantine.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // of a batch

// What is written by bulk writes alone (Store::WriteBulk).
bool IsBulk(store::Table table) {
  using enum store::Table;
  return table == kUsers || table == kPeople || table == kCheckpoint || table == kCheckpointCopy;
}

}  // namespace

Status LearnAll(store::Store& store, std::uint64_t seed, std::optional<std::uint32_t> partition) {
  const auto identity = ReadIdentity(store);
  if (!identity.ok()) return identity.status();
  auto checkpoint = CheckpointRecord::Get(store);
  if (checkpoint.status().code() == StatusCode::kNotFound) {
    return Status::InvalidArgument(
        "there is no checkpoint yet, which says how to learn: wait until it was served for "
        "durability.checkpoint_seconds");
  }
  if (!checkpoint.ok()) return checkpoint.status();
  EngineOptions options;
  options.policy = std::move(checkpoint.value().spec);
  options.seed = seed;
  options.partition = partition;
  options.now_ms = UnixMillis;
  if (identity.value().name_secret) options.names = NameHash(*identity.value().name_secret);
  Quarantine before(store, true, options.names);
  CODBAND_RETURN_IF_ERROR(before.Load());
  const auto learner = Learner::Open(store, options, identity.value().dim);
  if (!learner.ok()) return learner.status();
  if (learner.value()->quarantine().entries() > before.entries()) {
    const QuarantinedEntry entry = learner.value()->quarantine().List().back();
    return {StatusCode::kCheckFailed, QuarantineStatus(entry).message()};
  }
  return learner.value()->Checkpoint();
}

Result<Identity> ReadIdentity(const store::Store& store) {
  std::string bytes;
  CODBAND_RETURN_IF_ERROR(store.Get(store::Table::kMeta, Identity::kKey, bytes));
  return Identity::Decode(bytes);
}

Result<std::unique_ptr<Policy>> LoadPolicy(const Identity& identity,
                                           const CheckpointRecord& checkpoint) {
  const std::size_t dim = identity.dim == 0 ? kFirstDim : identity.dim;
  auto policy = MakePolicy(checkpoint.spec, {.dim = dim});
  if (!policy.ok()) return policy;
  PagedUsers* const users = policy.value()->paged_users();
  if (policy.value()->shared_pool() == nullptr || users == nullptr) {
    return Status::InvalidArgument(
        "the policy '" + checkpoint.spec.substr(0, checkpoint.spec.find(':')) +
        "' cannot be taken apart or put together: only 'codband' can, without prior=hawkes");
  }
  ByteReader in(checkpoint.shared);
  users->LoadShared(in);
  in.ExpectEnd();
  if (in.ok()) return policy;
  return Status::Corruption("the checkpoint cannot be read: " + in.status().message());
}

Result<ColumnBook> LoadColumns(const CheckpointRecord& checkpoint) {
  ColumnBook columns;
  if (checkpoint.columns.empty()) return columns;
  ByteReader in(checkpoint.columns);
  columns.Load(in);
  in.ExpectEnd();
  if (in.ok()) return columns;
  return Status::Corruption("the columns cannot be read: " + in.status().message());
}

Status TableWriter::Put(store::Table table, std::string_view key, std::string value) {
  if (table != table_ || bytes_ >= kMostBytes) CODBAND_RETURN_IF_ERROR(Flush());
  table_ = table;
  bytes_ += key.size() + value.size();
  batch_.Put(table, std::string(key), std::move(value));
  return {};
}

Status TableWriter::Flush() {
  if (batch_.empty()) return {};
  bytes_ = 0;
  store::StoreBatch batch = std::exchange(batch_, {});
  return IsBulk(table_) ? store_.WriteBulk(std::move(batch)) : store_.Write(batch, false);
}

Status TableWriter::Finish() {
  CODBAND_RETURN_IF_ERROR(Flush());
  store::StoreBatch nothing;
  nothing.Delete(store::Table::kLog, NumberKey(0));  // what comes before it is durable with it
  return store_.Write(nothing, true);
}

Status CopyAll(const store::Store& from, store::Store& to) {
  TableWriter out(to);
  for (std::size_t i = 0; i < store::kTableCount; ++i) {
    const auto table = static_cast<store::Table>(i);
    CODBAND_RETURN_IF_ERROR(ScanAll(from, table, {}, [&](auto key, auto value) {
      return out.Put(table, key, std::string(value));
    }));
  }
  return out.Finish();
}

KeyRange WithPrefix(std::string_view prefix) {
  KeyRange range{.from = std::string(prefix), .to = std::string(prefix)};
  ++range.to.back();
  return range;
}

}  // namespace codband::engine
