#include "codband/policy/item_history.h"

#include <algorithm>

namespace codband {

const ItemHistory::Entry* ItemHistory::Search(ItemId item) const {
  const auto found = std::ranges::lower_bound(entries_, item, {}, &Entry::item);
  return found == entries_.end() || found->item != item ? nullptr : &*found;
}

ItemHistory::Entry& ItemHistory::Touch(ItemId item, std::uint32_t life) {
  auto found = std::ranges::lower_bound(entries_, item, {}, &Entry::item);
  const Entry fresh{.item = item, .model = kNoModel, .life = life};
  if (found == entries_.end() || found->item != item) {
    found = entries_.insert(found, fresh);
    MarkNew(item);
  } else if (found->life != life) {
    *found = fresh;  // what was there has been forgotten with the item
  }
  found->last = ++now_;
  return *found;
}

void ItemHistory::MarkNew(ItemId item) {
  if (kMarksOfEach * (marked_ + 1) > 64 * marks_.size()) return MarkAnew();
  Mark(item);
  ++marked_;
}

void ItemHistory::MarkAnew() {
  const std::size_t words = entries_.size() * 2 * kMarksOfEach / 64;
  marks_.assign(std::max<std::size_t>(1, std::bit_floor(words)), 0);
  for (const Entry& entry : entries_) Mark(entry.item);
  marked_ = static_cast<std::uint32_t>(entries_.size());
}

std::optional<ItemHistory::Entry> ItemHistory::DropSurplus() {
  if (entries_.size() <= kMostItems) return std::nullopt;
  const auto oldest = std::ranges::min_element(entries_, {}, &Entry::last);
  const Entry dropped = *oldest;
  entries_.erase(oldest);
  return dropped;
}

void ItemHistory::Add(const ItemHistory& other) {
  for (const Entry& more : other.entries_) {
    const auto found = std::ranges::lower_bound(entries_, more.item, {}, &Entry::item);
    if (found == entries_.end() || found->item != more.item) {
      entries_.insert(found, more);
      continue;
    }
    found->sum += more.sum;
    found->squares += more.squares;
    found->reward += more.reward;
    found->shown += more.shown;
    found->last = std::max(found->last, more.last);
    found->own += more.own;
    found->own_products += more.own_products;
    found->own_squares += more.own_squares;
  }
  now_ = std::max(now_, other.now_);
  MarkAnew();
}

std::vector<ItemHistory::Entry> ItemHistory::TakeSince(std::size_t showings) {
  const auto before = [&](const Entry& entry) { return now_ - entry.last >= showings; };
  const auto first = std::stable_partition(entries_.begin(), entries_.end(), before);
  std::vector<Entry> taken(first, entries_.end());
  entries_.erase(first, entries_.end());
  MarkAnew();
  return taken;
}

void ItemHistory::Save(ByteWriter& out) const {
  out.U64(kHasOwn);
  out.U32(now_);
  out.U64(entries_.size());
  for (const Entry& entry : entries_) {
    out.U64(entry.item);
    out.U64(entry.model);
    out.Double(entry.sum);
    out.Floats({{entry.squares, entry.reward}});
    out.U32(entry.life);
    out.U32(entry.shown);
    out.U32(entry.last);
    out.Floats({{entry.own, entry.own_products, entry.own_squares}});
  }
}

void ItemHistory::Load(ByteReader& in) {
  const bool has_own = in.Skip(kHasOwn);
  now_ = in.U32("showings of a user");
  entries_.clear();
  const std::size_t count = in.Count("items of a user", 44);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Entry entry{.item = in.U64("item of a user"), .model = in.U64("group of an item"), .life = 0};
    entry.sum = in.Double("residuals of an item");
    float numbers[2] = {};
    in.Floats("squares of an item", numbers);
    entry.squares = numbers[0];
    entry.reward = numbers[1];
    entry.life = in.U32("life of an item");
    entry.shown = in.U32("showings of an item");
    entry.last = in.U32("last showing of an item");
    if (has_own) {
      float own[3] = {};
      in.Floats("user's own part of an item", own);
      entry.own = own[0];
      entry.own_products = own[1];
      entry.own_squares = own[2];
    }
    if (entry.shown == 0) in.Fail("item of a user", "was never shown");
    if (!entries_.empty() && entries_.back().item >= entry.item) {
      in.Fail("items of a user", "are not in order");
    }
    entries_.push_back(entry);
  }
  MarkAnew();
}

}  // namespace codband
