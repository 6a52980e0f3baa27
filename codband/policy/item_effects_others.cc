// What partitions know of items together (shared_pool.h).
#include <algorithm>

#include "codband/policy/item_effects.h"

namespace codband {

std::vector<ItemSums> ItemEffects::OwnSums() const {
  std::vector<ItemSums> sums;
  for (const Item& item : items_) {
    if (item.groups.empty()) continue;
    sums.push_back({.id = item.id,
                    .shown = item.shown,
                    .reward = item.reward,
                    .squares = item.squares,
                    .own_products = item.own_products,
                    .own_squares = item.own_squares,
                    .groups = item.groups});
  }
  std::ranges::sort(sums, {}, &ItemSums::id);
  return sums;
}

void ItemEffects::DropOthers(Item& item) {
  if (!item.shared) return;
  const ItemSums& others = item.shared->others;
  others_count_ -= others.shown;
  own_products_ -= others.own_products;
  own_squares_ -= others.own_squares;
  item.shared.reset();
}

void ItemEffects::TakeOthers(std::span<const ItemSums> others) {
  for (const ItemSums& sums : others) {
    std::uint32_t slot = slots_.Find(sums.id);
    if (slot == ItemSlots::kNone) {
      if (items_.size() >= most_) continue;
      slot = static_cast<std::uint32_t>(items_.size());
      Insert({.id = sums.id, .life = 0});
    }
    Item& item = items_[slot];
    item.shared = std::make_unique<Shared>(Shared{.others = sums, .groups = {}});
    others_count_ += sums.shown;
  }
}

// Groups that are one by now.
void ItemEffects::Rename(Item& item) const {
  ItemSums named{.id = item.id};
  named.Add({.id = item.id, .groups = item.groups}, aliases_);
  item.groups = std::move(named.groups);
}

void ItemEffects::Import(std::span<const ItemSums> others, const ModelAliases& aliases) {
  aliases_ = aliases;
  others_count_ = 0;
  for (std::size_t i = items_.size(); i-- > 0;) {
    items_[i].shared.reset();
    if (items_[i].groups.empty()) {
      Erase(i);
    } else {
      Rename(items_[i]);
    }
  }
  TakeOthers(others);
  own_products_ = own_squares_ = 0;  // from scratch
  for (const Item& item : items_) {
    own_products_ += item.own_products + (item.shared ? item.shared->others.own_products : 0);
    own_squares_ += item.own_squares + (item.shared ? item.shared->others.own_squares : 0);
  }
  for (Item& item : items_) Refresh(item);
  if (count_ + others_count_ >= next_) Learn();
}

void ItemEffects::Hold(std::span<const ItemSums> own, const Lives& lives) {
  items_.clear();
  slots_.clear();
  aliases_ = {};
  count_ = others_count_ = 0;
  own_products_ = own_squares_ = 0;
  lives_ = lives.last;
  for (std::size_t i = 0; i < own.size(); ++i) {
    slots_.Set(own[i].id, static_cast<std::uint32_t>(i));
    items_.push_back({.groups = own[i].groups,
                      .id = own[i].id,
                      .life = lives.of_items[i],
                      .shown = own[i].shown,
                      .reward = own[i].reward,
                      .squares = own[i].squares,
                      .own_products = own[i].own_products,
                      .own_squares = own[i].own_squares});
    count_ += own[i].shown;
    own_products_ += own[i].own_products;
    own_squares_ += own[i].own_squares;
    Refresh(items_.back());
  }
}

std::uint32_t ItemEffects::LifeOf(ItemId item) const {
  const Item* const found = Find(item);
  return found == nullptr ? 0 : found->life;
}

void ItemEffects::SaveOthers(ByteWriter& out) const {
  std::vector<ItemSums> sums;
  for (const Item& item : items_) {
    if (item.shared) sums.push_back(item.shared->others);
  }
  std::ranges::sort(sums, {}, &ItemSums::id);
  ItemSums::Save(sums, out);
}

// The items are there, and the sums over all of them too.
void ItemEffects::LoadOthers(ByteReader& in, const ModelAliases& aliases) {
  aliases_ = aliases;
  others_count_ = 0;
  TakeOthers(ItemSums::Load(in));
  for (Item& item : items_) {
    if (item.life == 0 && !item.shared) in.Fail("groups of an item", "are none");
    Refresh(item);
  }
}

}  // namespace codband
