#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace codband::server {

// Slots of one page, each of which gets an action of its own from those that it may show. Slots are
// filled one after another; what a slot must leave to those after it follows from a bipartite
// matching (augmenting paths). A slot that may show at least as many actions as there are slots is
// never in want: only the others are matched, so that all of it is O(slots⁴) at most, whatever the
// number of actions. Not thread-safe.
class SlotAssignment {
 public:
  // `allowed`: for each slot the actions that it may show, each once, below `actions`.
  SlotAssignment(std::vector<std::vector<std::uint32_t>> allowed, std::size_t actions);

  // A slot that cannot have an action of its own whatever the others get; nothing if all can.
  std::optional<std::size_t> stuck() const { return stuck_; }

  // The actions that this slot must leave to slots after it. Precondition: all before have taken
  // theirs, none is stuck.
  std::vector<std::uint32_t> ReservedFrom(std::size_t slot);
  // Precondition: the slot may show the action, and it was not reserved.
  void Take(std::size_t slot, std::uint32_t action);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Finds an action for the slot, moving others if need be.
  bool Match(std::size_t slot, std::uint32_t without, std::vector<std::uint32_t>& owner,
             std::vector<bool>& visited) const;
  bool Match(std::size_t slot, std::uint32_t without, std::vector<std::uint32_t>& owner) const;

  std::vector<std::vector<std::uint32_t>> allowed_;  // empty: of a slot that is never in want
  std::vector<std::uint32_t> owner_;  // of each action: the slot that it is matched with
  std::vector<bool> taken_;
  std::optional<std::size_t> stuck_;
};

}  // namespace codband::server
