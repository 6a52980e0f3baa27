#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "codband/policy/policy.h"

namespace codband {

// Fibonacci hashing: the high bits of a product, by which ids in a row are spread as well.
inline std::uint64_t HashOf(ItemId item) { return item * 0x9e37'79b9'7f4a'7c15; }

// Where each item is in a list: a hash table with open addressing, two to four places of 16 bytes
// an item. A catalogue may be ranked as a whole, so that finding an item, or that it is not there,
// touches one line of memory, which can be asked for beforehand. No id is kNoItem. Const functions
// may run concurrently, the others not.
class ItemSlots {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::size_t size() const { return size_; }

  // Brings the place of an item closer to the processor.
  void Prefetch(ItemId item) const {
    if (!places_.empty()) __builtin_prefetch(&places_[Home(item)]);
  }
  // kNone if it is not there.
  std::uint32_t Find(ItemId item) const {
    if (places_.empty()) return kNone;
    for (std::size_t i = Home(item);; i = Next(i)) {
      if (places_[i].item == item) return places_[i].slot;
      if (places_[i].item == kNoItem) return kNone;
    }
  }
  // Inserts the item, or moves it to another slot.
  void Set(ItemId item, std::uint32_t slot) {
    if (2 * (size_ + 1) > places_.size()) Grow();
    std::size_t i = Home(item);
    while (places_[i].item != kNoItem && places_[i].item != item) i = Next(i);
    size_ += places_[i].item == kNoItem ? 1 : 0;
    places_[i] = {item, slot};
  }
  // Those that had to make way come closer to their home again. Precondition: it is there.
  void Erase(ItemId item) {
    std::size_t gap = Home(item);
    while (places_[gap].item != item) gap = Next(gap);
    for (std::size_t i = Next(gap); places_[i].item != kNoItem; i = Next(i)) {
      const std::size_t way = (i - Home(places_[i].item)) & mask();
      if (way < ((i - gap) & mask())) continue;
      places_[gap] = places_[i];
      gap = i;
    }
    places_[gap] = {};
    --size_;
  }
  void clear() {
    places_.clear();
    size_ = 0;
  }

 private:
  struct Place {
    ItemId item = kNoItem;
    std::uint32_t slot = kNone;
  };
  static constexpr std::size_t kFirst = 16;

  std::size_t mask() const { return places_.size() - 1; }
  std::size_t Next(std::size_t i) const { return (i + 1) & mask(); }
  std::size_t Home(ItemId item) const {
    return static_cast<std::size_t>(HashOf(item) >> (64 - std::countr_zero(places_.size())));
  }
  void Grow() {
    const std::vector<Place> before =
        std::exchange(places_, std::vector<Place>(places_.empty() ? kFirst : 2 * places_.size()));
    size_ = 0;
    for (const Place& place : before) {
      if (place.item != kNoItem) Set(place.item, place.slot);
    }
  }

  std::vector<Place> places_;
  std::size_t size_ = 0;
};

}  // namespace codband
