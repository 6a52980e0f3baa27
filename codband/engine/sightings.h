#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/sip_hash.h"
#include "codband/base/status.h"
#include "codband/features/column_space.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// Counts in how many decisions, and for how many users, names were seen that have no column yet. A
// word of many users gets one; a session id or whatever else is of one user does not.
//
// Memory is bounded: each name has one of kSlots slots by its hash, and where two meet, one takes
// away from the count of the other. Names and users are kept as hashes alone. Each slot is a record
// of the store (kMeta), written with the decision that was counted, so that a restart changes
// nothing. Not thread-safe.
class Sightings {
 public:
  static constexpr std::string_view kPrefix = "sighting/";  // of the keys (kMeta)
  static constexpr std::size_t kSlots = 1024;
  // A name was seen often enough: in decisions for so many users (anonymous ones count each time),
  // or in so many decisions, since there may be but one user.
  static constexpr std::uint8_t kUsers = 3;
  static constexpr std::uint8_t kDecisions = 30;

  // What is often enough: either, or users alone.
  enum class Often : std::uint8_t { kBoth, kUsers };

  explicit Sightings(const SipKey& key = {}) : key_(key) {}

  // Reads the records of the last process; those that cannot be read count as empty.
  Status Load(const store::Store& store);

  // Counts a name of a decision for this user; the slot goes to the batch. Returns whether it was
  // seen often enough, and then counts it no longer.
  bool Count(features::Side side, std::string_view name, UserId user, store::StoreBatch& batch,
             Often enough = Often::kBoth);

  // A group begins; what was counted since then is taken back.
  void Begin() { before_.clear(); }
  void Undo();

 private:
  struct Slot {
    std::uint32_t name = 0;  // hash
    std::uint32_t user = 0;  // hash of the last one who was counted
    std::uint8_t users = 0;
    std::uint8_t decisions = 0;  // 0: empty
  };

  const SipKey key_;
  std::array<Slot, kSlots> slots_ = {};
  std::vector<std::pair<std::size_t, Slot>> before_;  // slots that the group has changed, as before
};

}  // namespace codband::engine
