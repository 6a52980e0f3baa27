#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/policy/item_slots.h"
#include "codband/policy/policy.h"

namespace codband {

// What one user brought to items, so that it can be taken out again and follow the user to another
// group. Sorted by item; 56 bytes for each, and two to four to see at once that most others are not
// there. Not thread-safe for writing.
class ItemHistory {
 public:
  // Beyond this many items the one that was shown longest ago is forgotten.
  static constexpr std::size_t kMostItems = 1024;

  // What is saved of items, here and in ItemEffects, begins with it since format 6: what is the
  // users' own is there. Before, it began with two numbers that are never as large.
  static constexpr std::uint64_t kHasOwn = 0xffff'c0db'ffff'0006;

  // All of a user's showings of one item.
  struct Entry {
    ItemId item;
    ModelId model;       // the group that they count for
    double sum = 0;      // of residuals
    float squares = 0;   // the same
    float reward = 0;    // the sum
    std::uint32_t life;  // of the item: changes when it is forgotten and added again
    std::uint32_t shown = 0;
    std::uint32_t last = 0;  // when, in showings of this user
    float own = 0;           // the sum of what residuals are beyond the effects that others share
    // Σ we·own and Σ w²own² over repeated showings, own being the sum before: see ItemEffects.
    float own_products = 0;
    float own_squares = 0;
  };

  std::span<const Entry> entries() const { return entries_; }
  std::span<Entry> entries() { return entries_; }

  // nullptr if the item was not shown.
  const Entry* Find(ItemId item) const { return IsMarked(item) ? Search(item) : nullptr; }
  // The entry of an item that is shown now. A new one has no showings.
  Entry& Touch(ItemId item, std::uint32_t life);
  // Takes out the entry shown longest ago, if there are more than may be.
  std::optional<Entry> DropSurplus();

  // Takes out the entries for which `drop` says so.
  template <typename Drop>
  void EraseIf(const Drop& drop) {
    if (std::erase_if(entries_, drop) > 0) MarkAnew();
  }
  // The showings of another part of the same user, whose entries may exceed kMostItems together:
  // each new showing takes one out.
  void Add(const ItemHistory& other);

  // Takes out the entries of the items of the last showings.
  std::vector<Entry> TakeSince(std::size_t showings);

  std::size_t HeapBytes() const {
    return codband::HeapBytes(entries_) + codband::HeapBytes(marks_);
  }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  static constexpr std::size_t kMarksOfEach = 16;  // at least

  const Entry* Search(ItemId item) const;
  std::size_t MarkOf(ItemId item) const {
    return static_cast<std::size_t>(HashOf(item) >> (64 - std::countr_zero(64 * marks_.size())));
  }
  bool IsMarked(ItemId item) const {
    if (marks_.empty()) return false;
    const std::size_t mark = MarkOf(item);
    return (marks_[mark / 64] >> (mark % 64) & 1) != 0;
  }
  void Mark(ItemId item) {
    const std::size_t mark = MarkOf(item);
    marks_[mark / 64] |= std::uint64_t{1} << (mark % 64);
  }
  // A new entry is there.
  void MarkNew(ItemId item);
  void MarkAnew();

  std::vector<Entry> entries_;
  // A bit for each of a power of two of hashes: 0 if no item with it is there. Those of items that
  // have gone stay until all are marked anew. Not saved.
  std::vector<std::uint64_t> marks_;
  std::uint32_t marked_ = 0;  // items since then
  std::uint32_t now_ = 0;
};

}  // namespace codband
