#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/policy.h"

namespace codband {

// The capability of a policy to learn together with others of the same spec (Policy::shared_pool).
// Each of them is a partition: a slice of the users, of which it alone learns. What it learns is
// sums, and sums add: every partition publishes its own as a *register*, a merger adds the
// registers up to a *pool*, and every partition imports what the others have in it. Its models are
// its own live sums and those of the others together; forgetting a user takes them out of the own
// ones, and with the next register out of the pool.
//
// A register holds all that the partition has, not what has changed: of several the one with the
// highest version counts, so that registers may be lost, repeated or overtake each other. Importing
// changes the state like learning does, and is to be repeated in the same place when a log is
// replayed; publishing does not.
//
// Thread safety is that of the policy: exclusive access but for const functions.
class SharedPool {
 public:
  static constexpr std::uint32_t kMostPartitions = 256;

  virtual ~SharedPool() = default;

  // Makes the policy a partition. Its models have ids of their own. Part of the state.
  // Preconditions: nothing has been learned; partition < kMostPartitions.
  virtual void SetPartition(std::uint32_t partition) = 0;

  // Whether others should hear of what was learned since the last register: a model has come, gone,
  // or gained or lost a period, or one is known better by so much that it matters.
  virtual bool HasNews() const = 0;
  // The register. `version` grows from one to the next. Precondition: this is a partition.
  virtual std::string Publish(std::uint64_t version) = 0;

  // A pool, as each partition imports it.
  struct Merged {
    std::uint64_t version = 0;
    std::map<std::uint32_t, std::string> imports;  // by partition
  };
  // Adds up registers, one of each partition, in the order of partitions. A function of its
  // arguments and of the policy's spec. `previous`: an import of the last pool, or empty; it has
  // which models have been joined so far. Versions of pools count from 1. kCorruption says what is
  // wrong with the bytes.
  virtual Result<Merged> Merge(std::span<const std::string> registers,
                               std::string_view previous) const = 0;

  // How many features the partitions of a pool have: a policy with fewer has to grow before it can
  // import it (Policy::Grow). 0 if the bytes are no pool, which Import then says.
  virtual std::size_t FeaturesOf(std::string_view pool) const = 0;

  // Replaces what is known of the others. A pool that is not newer than the last one changes
  // nothing. On failure nothing has changed: kCorruption for damaged bytes, kInvalidArgument if the
  // pool is not for this partition or has more features than the policy (Policy::Grow).
  virtual Status Import(std::string_view pool) = 0;

  // The version of the last pool imported; 0: none.
  virtual std::uint64_t pool_version() const = 0;

  // From one policy to partitions and back: as if they had always learned together. The records of
  // users are in an archive (paged_users.h), which is up to date.

  // One of the partitions that a policy is split into: what it shares (PagedUsers::SaveShared), and
  // the first pool, which it has yet to import. Records of users stay as they are.
  struct Part {
    std::string shared = {};
    std::string import = {};
  };
  // Where each user goes.
  using PartitionOf = std::function<std::uint32_t(UserId)>;
  // Calls its argument for the record of every user.
  using VisitUsers = std::function<Status(const PagedUsers::VisitRecord&)>;
  // Every partition has what its users have brought. What is nobody's is partition 0's, so that all
  // of them together have what the policy had. kInvalidArgument if this is a partition; kCorruption
  // if a record cannot be read.
  virtual Result<std::vector<Part>> Split(std::uint32_t partitions, const PartitionOf& partition_of,
                                          const VisitUsers& users) const = 0;

  // Makes one policy of partitions. Models are called by new names.
  class Joining {
   public:
    virtual ~Joining() = default;
    // The new name of a model of any partition.
    virtual ModelId NameOf(ModelId model) const = 0;
    // The record of a user of the partition, as the joined policy has it: to be called for every
    // user but kNobody. kCorruption if it cannot be read.
    virtual Result<std::string> Take(std::uint32_t partition, std::string_view record) = 0;
    // The record of kNobody, of whom every partition may have one; empty if none has.
    virtual const std::string& nobody() const = 0;
    // What is shared, once all users were taken.
    virtual std::string Finish() = 0;
  };
  struct Joined {
    Policy* policy = nullptr;  // which outlives the joining
    std::string nobody = {};   // its record of kNobody; empty: none
  };
  // All partitions there are, in their order, which have the spec of this policy and have imported
  // pools of one merger. They grow to the same features.
  virtual Result<std::unique_ptr<Joining>> Join(std::vector<Joined> partitions) const = 0;
};

// The newest register of each partition.
class RegisterShelf {
 public:
  // Returns whether it is newer than what was there; others are ignored. kCorruption if the bytes
  // are no register.
  Result<bool> Put(std::string bytes);
  // In the order of partitions.
  std::vector<std::string> registers() const;

 private:
  struct Entry {
    std::uint64_t version;
    std::string bytes;
  };
  std::map<std::uint32_t, Entry> entries_;
};

}  // namespace codband
