#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/records.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// What is used where a store becomes several, or several one (store_splitter.h, store_joiner.h).
// Nobody else uses these stores meanwhile.

// Learns what the log has beyond the checkpoint, and makes another checkpoint: the log is empty
// then. `seed`: that of its server (EngineOptions). `partition`: of a loop of several, that it is.
// kInvalidArgument: there is no checkpoint. kCheckFailed: an entry of the log cannot be learned.
Status LearnAll(store::Store& store, std::uint64_t seed,
                std::optional<std::uint32_t> partition = {});

// A store and what it says it is.
Result<Identity> ReadIdentity(const store::Store& store);
// The policy of a checkpoint, with all that is shared. Records of users stay in the store.
Result<std::unique_ptr<Policy>> LoadPolicy(const Identity& identity,
                                           const CheckpointRecord& checkpoint);
Result<ColumnBook> LoadColumns(const CheckpointRecord& checkpoint);

// Fills the tables of a store, one after the other.
class TableWriter {
 public:
  explicit TableWriter(store::Store& store) : store_(store) {}
  Status Put(store::Table table, std::string_view key, std::string value);
  // All of it is durable on return.
  Status Finish();

 private:
  Status Flush();

  store::Store& store_;
  store::Table table_ = store::Table::kMeta;
  store::StoreBatch batch_;
  std::size_t bytes_ = 0;
};

// Everything, into an empty store.
Status CopyAll(const store::Store& from, store::Store& to);

// A prefix of keys as a range.
struct KeyRange {
  std::string from;
  std::string to;  // empty: the end
};
KeyRange WithPrefix(std::string_view prefix);
inline const KeyRange kWholeTable;

// Calls visit(key, value) → Status for a range of a table until it fails.
template <typename Visit>
Status ScanAll(const store::Store& store, store::Table table, const KeyRange& range,
               const Visit& visit) {
  Status status;
  const Status scanned = store.Scan(table, range.from, range.to, [&](auto key, auto value) {
    status = visit(key, value);
    return status.ok();
  });
  return scanned.ok() ? status : scanned;
}

}  // namespace codband::engine
