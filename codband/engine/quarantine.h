#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// The log entries that cannot be applied. An entry that is put here is durably left out: what was
// learned is a function of the checkpoint, the log and this list, so it is the same after any
// restart. It lies in kMeta. One thread at a time may change it; any may read.
class Quarantine {
 public:
  // So many are remembered; beyond that the oldest are dropped, once a checkpoint is behind them.
  static constexpr std::size_t kMostKept = 1000;

  // `store` outlives it. If `read_only`, what is added stays in memory.
  Quarantine(store::Store& store, bool read_only, const NameHash& names = {})
      : store_(store), read_only_(read_only), names_(names) {}

  Status Load();

  // Durable on return. `checkpoint` is the last entry that no replay will meet again.
  Status Add(QuarantinedEntry entry, std::uint64_t checkpoint);
  // Removes what is known of these users; their entries stay left out. Durable on return.
  Status Erase(std::span<const UserId> users);

  std::optional<QuarantinedEntry> Find(std::uint64_t sequence) const;
  bool Contains(std::uint64_t sequence) const { return Find(sequence).has_value(); }
  std::optional<QuarantinedEntry> FindEvent(std::uint64_t event) const;
  bool HasUser(const std::string& user) const;
  std::vector<QuarantinedEntry> List() const;  // oldest first
  std::uint64_t entries() const;               // runs count with their length
  // Whether the last `count` that were put here follow each other in the log.
  bool EndsInARow(std::size_t count) const;

 private:
  Status Write(const store::StoreBatch& batch) const;

  store::Store& store_;
  const bool read_only_;
  const NameHash names_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, QuarantinedEntry> by_first_;  // changed under the mutex
};

// What the sender of a quarantined entry is told.
Status QuarantineStatus(const QuarantinedEntry& entry);

}  // namespace codband::engine
