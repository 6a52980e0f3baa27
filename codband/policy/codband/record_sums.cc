#include "codband/policy/codband/record_sums.h"

#include <algorithm>
#include <utility>

namespace codband {

namespace {

template <typename Sums>
const Sums* FindSums(const std::vector<Sums>& sums, std::uint64_t id) {
  const auto found = std::ranges::lower_bound(sums, id, {}, &Sums::id);
  return found == sums.end() || found->id != id ? nullptr : &*found;
}

void Subtract(const ModelSums& part, ModelSums& rest) {
  rest.periods -= std::min(part.periods, rest.periods);
  rest.users -= std::min(part.users, rest.users);
  rest.data.Remove(part.data);
}
bool IsNothing(const ModelSums& rest) { return rest.periods == 0; }
void Combine(const ModelSums& rest, ModelSums& to) {
  to.periods += rest.periods;
  to.users += rest.users;
  to.data.Add(rest.data);
}

void Subtract(const ItemSums& part, ItemSums& rest) {
  rest.shown -= std::min(part.shown, rest.shown);
  rest.reward -= part.reward;
  rest.squares -= part.squares;
  rest.own_products -= part.own_products;
  rest.own_squares -= part.own_squares;
  for (const ItemSums::Group& group : part.groups) {
    const auto found = std::ranges::find(rest.groups, group.model, &ItemSums::Group::model);
    if (found == rest.groups.end()) continue;
    found->weight -= group.weight;
    found->sum -= group.sum;
    found->users -= std::min(group.users, found->users);
  }
}
bool IsNothing(ItemSums& rest) {
  std::erase_if(rest.groups, [](const ItemSums::Group& group) { return group.users == 0; });
  return rest.shown == 0 || rest.groups.empty();
}
void Combine(const ItemSums& rest, ItemSums& to) { to.Add(rest, {}); }

template <typename Sums>
void AddRestOf(const std::vector<Sums>& all, std::span<const PoolSums> parts,
               std::vector<Sums> PoolSums::*member, std::vector<Sums>& to) {
  for (const Sums& sums : all) {
    Sums rest = sums;
    for (const PoolSums& part : parts) {
      if (const Sums* const found = FindSums(part.*member, sums.id)) Subtract(*found, rest);
    }
    if (IsNothing(rest)) continue;
    const auto place = std::ranges::lower_bound(to, rest.id, {}, &Sums::id);
    if (place != to.end() && place->id == rest.id) {
      Combine(rest, *place);
    } else {
      to.insert(place, std::move(rest));
    }
  }
}

}  // namespace

void AddRest(const PoolSums& all, std::span<const PoolSums> parts, PoolSums& to) {
  std::vector<ModelSums> models = to.models;  // it may be one of the parts
  std::vector<ItemSums> items = to.items;
  AddRestOf(all.models, parts, &PoolSums::models, models);
  AddRestOf(all.items, parts, &PoolSums::items, items);
  to.models = std::move(models);
  to.items = std::move(items);
}

ModelSums& RecordSums::Of(ModelId model) {
  const auto found = models_.find(model);
  if (found != models_.end()) return found->second;
  ModelSums fresh{.id = model, .data = linalg::SufficientStats(dim_)};
  return models_.emplace(model, std::move(fresh)).first->second;
}

void RecordSums::AddItems(const ItemHistory& history) {
  for (const ItemHistory::Entry& entry : history.entries()) {
    ItemSums shown{.id = entry.item,
                   .shown = entry.shown,
                   .reward = entry.reward,
                   .squares = entry.squares,
                   .own_products = entry.own_products,
                   .own_squares = entry.own_squares};
    shown.groups.push_back({.model = entry.model,
                            .weight = static_cast<double>(entry.shown),
                            .sum = entry.sum,
                            .users = 1});
    items_.try_emplace(entry.item, ItemSums{.id = entry.item}).first->second.Add(shown, {});
  }
}

void RecordSums::Add(const UserRecord& user) {
  if (user.has_period()) {
    ModelSums& model = Of(user.current.model);
    ++model.periods;
    ++model.users;
    model.data.Add(user.current.data);
  }
  for (const PastPeriods::Entry& entry : user.past.entries()) {
    ModelSums& model = Of(entry.model);
    model.periods += user.past.PeriodsOn(entry.model);
    entry.data.Read(past_);
    model.data.Add(past_);
  }
  if (user.items != nullptr) AddItems(*user.items);
  evidence_.rewards.others += user.other_rewards;
  evidence_.changes.observations += user.observations();
  evidence_.changes.confirmed += user.detector->verdicts().confirmed;
  evidence_.departures.Add(user.departure_evidence);
}

PoolSums RecordSums::Take() {
  PoolSums sums;
  sums.evidence = std::exchange(evidence_, {});
  for (auto& [id, model] : std::exchange(models_, {})) sums.models.push_back(std::move(model));
  for (auto& [id, item] : std::exchange(items_, {})) sums.items.push_back(std::move(item));
  std::ranges::sort(sums.items, {}, &ItemSums::id);
  return sums;
}

}  // namespace codband
