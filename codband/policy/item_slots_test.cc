#include "codband/policy/item_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "codband/base/random.h"

namespace codband {
namespace {

TEST(ItemSlotsTest, DoesWhatAMapDoes) {
  for (const std::uint64_t ids : {40ULL, 1ULL << 62U}) {  // in a row, and all over
    ItemSlots slots;
    std::map<ItemId, std::uint32_t> map;
    RandomStream random({1, ids}, 650);
    for (std::uint32_t step = 0; step < 20'000; ++step) {
      const ItemId known = map.empty() ? 0 : map.lower_bound(map.rbegin()->first / 2)->first;
      const ItemId item = random.Below(2) == 0 ? known : random.Below(ids);
      if (random.Below(3) == 0 && map.erase(item) > 0) {
        slots.Erase(item);
      } else {
        slots.Set(item, step);
        map[item] = step;
      }
      ASSERT_EQ(slots.size(), map.size());
      ASSERT_EQ(slots.Find(item), map.contains(item) ? map[item] : ItemSlots::kNone);
      if (step % 500 != 0) continue;
      for (const auto& [id, slot] : map) ASSERT_EQ(slots.Find(id), slot);
    }
    slots.clear();
    EXPECT_EQ(slots.size(), 0U);
    EXPECT_EQ(slots.Find(1), ItemSlots::kNone);
  }
}

}  // namespace
}  // namespace codband
