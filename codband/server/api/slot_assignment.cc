#include "codband/server/api/slot_assignment.h"

#include <algorithm>
#include <utility>

namespace codband::server {

SlotAssignment::SlotAssignment(std::vector<std::vector<std::uint32_t>> allowed, std::size_t actions)
    : allowed_(std::move(allowed)), owner_(actions, kNone), taken_(actions, false) {
  for (std::size_t slot = 0; slot < allowed_.size() && !stuck_; ++slot) {
    if (allowed_[slot].size() >= allowed_.size()) {
      allowed_[slot].clear();
    } else if (!Match(slot, kNone, owner_)) {
      stuck_ = slot;
    }
  }
}

bool SlotAssignment::Match(std::size_t slot, std::uint32_t without,
                           std::vector<std::uint32_t>& owner) const {
  std::vector<bool> visited(owner.size(), false);
  return Match(slot, without, owner, visited);
}

bool SlotAssignment::Match(std::size_t slot, std::uint32_t without,
                           std::vector<std::uint32_t>& owner, std::vector<bool>& visited) const {
  for (const std::uint32_t action : allowed_[slot]) {
    if (action == without || taken_[action] || visited[action]) continue;
    visited[action] = true;
    if (owner[action] != kNone && !Match(owner[action], without, owner, visited)) continue;
    owner[action] = static_cast<std::uint32_t>(slot);
    return true;
  }
  return false;
}

std::vector<std::uint32_t> SlotAssignment::ReservedFrom(std::size_t slot) {
  std::ranges::replace(owner_, static_cast<std::uint32_t>(slot), kNone);
  std::vector<std::uint32_t> reserved;
  for (std::uint32_t action = 0; action < owner_.size(); ++action) {
    if (owner_[action] == kNone) continue;
    std::vector<std::uint32_t> others = owner_;
    others[action] = kNone;
    if (!Match(owner_[action], action, others)) reserved.push_back(action);
  }
  return reserved;
}

void SlotAssignment::Take(std::size_t slot, std::uint32_t action) {
  std::ranges::replace(owner_, static_cast<std::uint32_t>(slot), kNone);
  taken_[action] = true;
  const std::uint32_t loser = std::exchange(owner_[action], kNone);
  if (loser != kNone) Match(loser, action, owner_);
}

}  // namespace codband::server
