#include "codband/server/api/slot_assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "codband/base/random.h"

namespace codband::server {
namespace {

using Allowed = std::vector<std::vector<std::uint32_t>>;

// Whether the slots from `slot` on can all have an action of their own, by trying everything.
bool CanBeFilled(const Allowed& allowed, std::size_t slot, std::set<std::uint32_t>& taken) {
  if (slot == allowed.size()) return true;
  return std::ranges::any_of(allowed[slot], [&](std::uint32_t action) {
    if (!taken.insert(action).second) return false;
    const bool filled = CanBeFilled(allowed, slot + 1, taken);
    taken.erase(action);
    return filled;
  });
}

TEST(SlotAssignmentTest, AnActionThatIsALaterSlotsOnlyOneIsLeftToIt) {
  SlotAssignment slots({{0, 1}, {1}}, 2);
  ASSERT_FALSE(slots.stuck());
  EXPECT_EQ(slots.ReservedFrom(0), std::vector<std::uint32_t>{1});
}

TEST(SlotAssignmentTest, SlotsThatShareTooFewActionsAreFound) {
  EXPECT_TRUE(SlotAssignment({{0, 1}, {0, 1}, {0, 1}}, 3).stuck());
  EXPECT_EQ(SlotAssignment({{0}, {}}, 2).stuck(), 1U);
}

// Any choice that is not reserved can be completed, no other can, whatever is taken on the way.
TEST(SlotAssignmentTest, EqualsTryingEverything) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random({.seed = seed, .event = 0}, 1);
    const std::size_t actions = 1 + random.Below(6);
    Allowed allowed(1 + random.Below(5));
    for (auto& slot : allowed) {
      for (std::uint32_t action = 0; action < actions; ++action) {
        if (random.Below(2) == 0) slot.push_back(action);
      }
    }
    SlotAssignment slots(allowed, actions);
    std::set<std::uint32_t> taken;
    ASSERT_EQ(!slots.stuck(), CanBeFilled(allowed, 0, taken)) << seed;
    if (slots.stuck()) continue;
    for (std::size_t slot = 0; slot < allowed.size(); ++slot) {
      const std::vector<std::uint32_t> reserved = slots.ReservedFrom(slot);
      std::vector<std::uint32_t> open;
      for (const std::uint32_t action : allowed[slot]) {
        if (!taken.insert(action).second) continue;
        const bool completes = CanBeFilled(allowed, slot + 1, taken);
        taken.erase(action);
        ASSERT_EQ(completes, std::ranges::count(reserved, action) == 0) << seed << ' ' << slot;
        if (completes) open.push_back(action);
      }
      ASSERT_FALSE(open.empty()) << seed;
      const std::uint32_t choice = open[random.Below(open.size())];
      slots.Take(slot, choice);
      taken.insert(choice);
    }
  }
}

}  // namespace
}  // namespace codband::server
