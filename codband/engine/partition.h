#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/item.h"
#include "codband/features/column_space.h"
#include "codband/policy/shared_pool.h"

namespace codband::engine {

// A change of what all partitions of a loop have alike: columns that are given out to names, where
// every name has one, then items that are put, then items that are deleted.
struct CatalogueChange {
  std::vector<Item> put = {};
  std::vector<std::string> deleted = {};
  // Of an engine: what it asks for (ColumnClerk::Ask). Of the loop: what is given, which follows
  // `first_column` columns, names of the items that are put included.
  std::vector<features::ColumnSpace::Addition> columns = {};
  std::uint64_t first_column = 0;

  friend bool operator==(const CatalogueChange&, const CatalogueChange&) = default;
};

// Changes in their order, as bytes. Decode fails with kCorruption on what Encode cannot have
// written; no input can crash it.
std::string EncodeChanges(std::span<const CatalogueChange> changes);
Result<std::vector<CatalogueChange>> DecodeChanges(std::string_view bytes);

// The partition whose engine made this event id up; nothing if none did.
std::optional<std::uint32_t> PartitionOfEvent(std::string_view event_id);

// An engine that has a slice of the users of a loop, as those see it who keep the slices together:
// the catalogue and the columns are the same in all of them, and they learn together
// (policy/shared_pool.h). Functions may be called from any thread; `done` as of Engine.
class Partition {
 public:
  using Done = std::function<void(Status)>;

  // Up to where it has followed the loop's catalogue. Durable: in the store with the items.
  virtual Result<std::uint64_t> CatalogueSequence() const = 0;
  // Makes these changes, all of them or none, and stands at `sequence` then.
  virtual void Follow(std::uint64_t sequence, std::vector<CatalogueChange> changes, Done done) = 0;

  // Whether what it learns can be shared: that is up to the policy.
  virtual bool shares() const = 0;
  // Counts what it has learned itself: if it has not grown there is nothing new to publish.
  virtual std::uint64_t learned() const = 0;
  // What it shares, and up to which log entry that is learned.
  struct Register {
    std::string bytes = {};
    std::uint64_t sequence = 0;
  };
  // The register, if there is news or `always`; nothing otherwise, and while learning waits.
  virtual std::optional<Register> Publish(std::uint64_t version, bool always) = 0;
  // As SharedPool::Merge.
  virtual Result<SharedPool::Merged> Merge(std::span<const std::string> registers,
                                           std::string_view previous) const = 0;
  // Imports a pool: an entry of the log like any other, so that a replay gives the same.
  virtual void Import(std::string pool, Done done) = 0;
  // The last log entry that is durable.
  virtual std::uint64_t committed() const = 0;

 protected:
  ~Partition() = default;
};

}  // namespace codband::engine
