// What is saved of items, and whether users' records fit it.
#include <fmt/format.h>

#include <algorithm>

#include "codband/policy/item_effects.h"

namespace codband {

void ItemEffects::SaveEstimates(ByteWriter& out) const {
  out.U32(lives_);
  out.U64(count_);
  out.U64(next_);
  out.U32(static_cast<std::uint32_t>(item_step_));
  out.U32(static_cast<std::uint32_t>(group_step_));
  out.Double(noise_);
  out.Double(own_products_);
  out.Double(own_squares_);
}

void ItemEffects::LoadEstimates(ByteReader& in, bool has_own) {
  lives_ = in.U32("lives of items");
  count_ = in.U64("showings of items");
  next_ = in.U64("next learning of items");
  const std::uint32_t item_step = in.U32("variance of items");
  const std::uint32_t group_step = in.U32("variance of a group's items");
  if (std::max(item_step, group_step) >= kSteps) in.Fail("variance of items", "is off the grid");
  const double noise = in.Double("noise of items");
  if (noise < 0) in.Fail("noise of items", "is negative");
  if (!in.ok()) return;
  item_step_ = static_cast<int>(item_step);
  group_step_ = static_cast<int>(group_step);
  noise_ = noise;
  own_products_ = own_squares_ = 0;
  if (has_own) {
    own_products_ = in.Double("products of users' own parts");
    own_squares_ = in.Double("squares of users' own parts");
  }
  TakeSteps();
}

void ItemEffects::Save(ByteWriter& out) const {
  out.U64(ItemHistory::kHasOwn);
  SaveEstimates(out);
  out.U64(items_.size());
  for (const Item& item : items_) {
    out.U64(item.id);
    out.U32(item.life);
    out.U64(item.shown);
    out.Double(item.reward);
    out.Double(item.squares);
    out.Double(item.own_products);
    out.Double(item.own_squares);
    out.U64(item.groups.size());
    for (const Group& group : item.groups) {
      out.U64(group.model);
      out.Double(group.weight);
      out.Double(group.sum);
      out.U64(group.users);
    }
  }
}

void ItemEffects::Load(ByteReader& in) {
  const bool has_own = in.Skip(ItemHistory::kHasOwn);
  LoadEstimates(in, has_own);
  items_.clear();
  gists_.clear();
  slots_.clear();
  const std::size_t count = in.Count("items", 44);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Item item{.id = in.U64("item"), .life = in.U32("life of an item")};
    item.shown = in.U64("showings of an item");
    item.reward = in.Double("reward of an item");
    item.squares = in.Double("squares of an item");
    if (has_own) {
      item.own_products = in.Double("products of users' own parts");
      item.own_squares = in.Double("squares of users' own parts");
    }
    const std::size_t groups = in.Count("groups of an item", 32);
    for (std::size_t g = 0; g < groups && in.ok(); ++g) {
      Group group{.model = in.U64("group of an item")};
      group.weight = in.Double("weight of a group");
      group.sum = in.Double("residuals of a group");
      group.users = in.U64("users of a group");
      if (group.users == 0) in.Fail("users of a group", "are none");
      item.groups.push_back(group);
    }
    if (item.groups.empty() && item.life != 0) in.Fail("groups of an item", "are none");
    if (item.id == kNoItem) in.Fail("item", "is none");
    if (Find(item.id) != nullptr) in.Fail("item", "appears twice");
    if (!in.ok()) return;
    Refresh(Insert(std::move(item)));
  }
}

void ItemEffects::Tally::Add(const ItemHistory& user) {
  for (const ItemHistory::Entry& entry : user.entries()) {
    const Item* const item = effects_.Find(entry);
    if (item != nullptr)
      shown_[static_cast<std::size_t>(item - effects_.items_.data())] += entry.shown;
  }
}

std::string ItemEffects::Tally::Fault() const {
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    const Item& item = effects_.items_[i];
    if (item.groups.empty() && !item.shared) {
      return fmt::format("item {:016x} was shown to nobody", item.id);
    }
    if (shown_[i] == item.shown) continue;
    return fmt::format("item {:016x} was shown {} times; to its users {} times", item.id,
                       item.shown, shown_[i]);
  }
  return {};
}

}  // namespace codband
