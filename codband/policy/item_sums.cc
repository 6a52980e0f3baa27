#include "codband/policy/item_sums.h"

#include <algorithm>

namespace codband {

void ItemSums::Add(const ItemSums& other, const ModelAliases& aliases) {
  shown += other.shown;
  reward += other.reward;
  squares += other.squares;
  own_products += other.own_products;
  own_squares += other.own_squares;
  for (const Group& more : other.groups) {
    const ModelId model = aliases.Resolve(more.model);
    auto group = std::ranges::find(groups, model, &Group::model);
    if (group == groups.end()) group = groups.insert(group, {.model = model});
    group->weight += more.weight;
    group->sum += more.sum;
    group->users += more.users;
  }
}

void ItemSums::Save(std::span<const ItemSums> items, ByteWriter& out) {
  out.U64(items.size());
  for (const ItemSums& item : items) {
    out.U64(item.id);
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

std::vector<ItemSums> ItemSums::Load(ByteReader& in) {
  std::vector<ItemSums> items;
  const std::size_t count = in.Count("items", 7 * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    ItemSums item{.id = in.U64("item")};
    if (item.id == kNoItem) in.Fail("item", "is none");
    item.shown = in.U64("showings of an item");
    item.reward = in.Double("reward of an item");
    item.squares = in.Double("squares of an item");
    item.own_products = in.Double("products of users' own parts");
    item.own_squares = in.Double("squares of users' own parts");
    const std::size_t groups = in.Count("groups of an item", 4 * sizeof(std::uint64_t));
    for (std::size_t g = 0; g < groups && in.ok(); ++g) {
      Group group{.model = in.U64("group of an item")};
      group.weight = in.Double("weight of a group");
      group.sum = in.Double("residuals of a group");
      group.users = in.U64("users of a group");
      item.groups.push_back(group);
    }
    if (!items.empty() && item.id <= items.back().id) in.Fail("item", "is out of order");
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace codband
