#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/partition.h"
#include "codband/engine/store_copy.h"
#include "codband/policy/shared_pool.h"
#include "codband/store/store.h"

namespace codband::engine {

// Takes the store of one server apart into those of the partitions of a loop, as if they had always
// been: each gets what there is of its users (what the policy knows, names and histories, decisions
// that wait, what is still to be erased), its part of all sums (SharedPool::Split), and a log entry
// with the first pool, which is what the others have. The catalogue and the columns are
// everybody's.
//
// What is no user's is partition 0's: curves, what is in quarantine without a user. Visitors
// without an id are one user, of one partition. Decisions of visitors without an id, and those that
// are settled, whose user is not known any more, are where who asks for their event looks first.
// Events of the past that were imported are known to all.
//
// Not thread-safe. Memory: that of the policy of each partition.
class StoreSplitter {
 public:
  // `whole` has learned all (LearnAll), does not change, and outlives it. `partition_of` puts users
  // in the order of their ids. kInvalidArgument: it cannot be split.
  static Result<std::unique_ptr<StoreSplitter>> Open(const store::Store& whole,
                                                     std::uint32_t partitions,
                                                     SharedPool::PartitionOf partition_of);

  // What all partitions have alike.
  const Identity& identity() const { return identity_; }
  // The changes that make the catalogue and its columns out of nothing, in their order: one frame
  // of the loop's log each, behind that of the identity.
  const std::vector<CatalogueChange>& catalogue() const { return catalogue_; }
  // The first pool, as partition 0 imports it.
  const std::string& pool() const { return parts_[0].learned.import; }
  // Names that one user alone has sent, which the loop must not know: their columns are nobody's.
  std::size_t forgotten_names() const { return forgotten_names_; }

  // Fills the store of a partition, which is empty, and learns the log entry.
  Status Fill(std::uint32_t partition, store::Store& part) const;

 private:
  struct Part {
    SharedPool::Part learned = {};
    std::uint64_t users = 0;
    std::uint64_t changes = 0;
    std::vector<Change> recent = {};
    ColumnBook columns = {};
  };

  StoreSplitter(const store::Store& whole, std::uint32_t partitions,
                SharedPool::PartitionOf partition_of)
      : whole_(whole), partition_of_(std::move(partition_of)), parts_(partitions) {}
  Status Read();
  Status ForgetPrivateNames(ColumnBook& columns);
  Status SplitPolicy();
  Status SplitPeople(const ColumnBook& columns);
  Status PlaceDecisions();
  Status MakeCatalogue(const ColumnBook& columns);

  std::uint32_t PartitionOfName(const std::string& name) const {
    return partition_of_(names_.User(name));
  }
  std::uint32_t PartitionOfDecision(const std::string& event, std::string_view bytes) const;
  KeyRange UsersOf(std::uint32_t partition) const;
  // The partition of a record of kMeta that is of one; nothing: all have it.
  std::optional<std::uint32_t> PartitionOfMeta(std::string_view key, std::string_view value) const;

  Status FillMeta(std::uint32_t partition, TableWriter& out) const;
  Status FillCheckpoint(std::uint32_t partition, TableWriter& out) const;
  Status FillDecisions(std::uint32_t partition, TableWriter& out) const;
  Status CopyTable(store::Table table, const KeyRange& range, TableWriter& out) const;

  const store::Store& whole_;
  const SharedPool::PartitionOf partition_of_;
  Identity identity_;
  NameHash names_;
  CheckpointRecord checkpoint_;
  std::int64_t time_ms_ = 0;  // when it was served last
  std::vector<CatalogueChange> catalogue_;
  std::size_t forgotten_names_ = 0;
  std::vector<Part> parts_;
  std::unordered_map<std::string, std::uint32_t> decisions_;  // by event, where each goes
};

}  // namespace codband::engine
