#include "codband/policy/item_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "codband/base/check.h"
#include "codband/policy/gittins_index.h"

namespace codband {
namespace {

// The grid of τ and ω: step 0 is 0, the others are powers of two.
constexpr int kSteps = 14;  // up to 1: with more a single showing would decide
constexpr int kStepOfOne = 13;
constexpr int kItemStep = 7;   // τ = 1/64, beforehand
constexpr int kGroupStep = 3;  // ω = 1/1024
constexpr int kMostMoves = 8;  // at a time

constexpr std::uint64_t kFirst = 16;  // showings before the variances are learned
constexpr std::uint64_t kGrowth = 8;  // and again after an eighth of all so far

constexpr double kLeastNoise = 1e-9;  // of the residuals' mean square

// υ beforehand, and how many repeated showings that is worth.
constexpr double kOwnRatio = 1.0 / 32;
constexpr double kOwnWeight = 64;
constexpr double kMostOwnRatio = 1;  // as of the others

// Of sums that are kept in single precision: infinity could not be read back.
float Float(double sum) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(sum, -kLargest, kLargest));
}

double RatioAt(int step) { return step == 0 ? 0 : std::ldexp(1.0, step - kStepOfOne); }

// While hardly any item has been shown twice its effect cannot be told from noise.
double LogPrior(int item_step, int group_step) {
  const double item = (item_step - kItemStep) / 3.0;
  const double group = (group_step - kGroupStep) / 3.0;
  return -0.5 * (item * item + group * group);
}

}  // namespace

ItemEffects::ItemEffects(bool groups)
    : groups_(groups), item_step_(kItemStep), group_step_(groups ? kGroupStep : 0) {}

const ItemEffects::Item* ItemEffects::Find(ItemId id) const {
  const auto found = slots_.find(id);
  return found == slots_.end() ? nullptr : &items_[found->second];
}

ItemEffects::Item* ItemEffects::FindOrMake(ItemId id) {
  const auto found = slots_.find(id);
  if (found != slots_.end()) {
    Item& item = items_[found->second];
    if (item.life == 0) item.life = ++lives_;
    return &item;
  }
  if (items_.size() >= kMostItems) return nullptr;
  slots_.emplace(id, static_cast<std::uint32_t>(items_.size()));
  return &items_.emplace_back(Item{.id = id, .life = ++lives_});
}

void ItemEffects::Erase(std::size_t slot) {
  slots_.erase(items_[slot].id);
  if (slot + 1 < items_.size()) {
    items_[slot] = std::move(items_.back());
    slots_[items_[slot].id] = static_cast<std::uint32_t>(slot);
  }
  items_.pop_back();
}

double ItemEffects::OwnRatio() const {
  if (!(noise_ > 0)) return 0;
  const double worth = kOwnWeight * noise_;
  const double slope = (own_products_ + kOwnRatio * worth) / (own_squares_ + worth);
  return std::clamp(slope, 0.0, kMostOwnRatio);
}

ItemEffects::Effect ItemEffects::Of(ItemId id, std::span<const Share> shares,
                                    const ItemHistory* user) const {
  const double nothing_known = item_ratio_ + group_ratio_;
  const Item* item = nothing_known > 0 ? Find(id) : nullptr;
  if (item == nullptr) return {.variance = nothing_known * noise_};
  const double scale = 1 / (1 + item_ratio_ * item->weight);
  const double item_mean = item_ratio_ * item->sum * scale;
  const double item_variance = item_ratio_ * scale;
  double mean = item_mean;
  double variance = item_variance + group_ratio_;
  if (group_ratio_ > 0) {
    for (const Share& share : shares) {
      const auto group = std::ranges::find(item->all_groups(), share.model, &Group::model);
      if (group == item->all_groups().end()) continue;
      const double w = 1 / (1 + group->weight * group_ratio_);
      mean += share.chance * (w * (item_mean + group_ratio_ * group->sum) - item_mean);
      variance +=
          share.chance * (w * w * item_variance + group_ratio_ * w - item_variance - group_ratio_);
    }
  }
  Effect out{.mean = mean, .variance = variance * noise_, .known = true};
  const ItemHistory::Entry* const entry = user == nullptr ? nullptr : user->Find(id);
  if (entry != nullptr && entry->life == item->life) {
    const double ratio = OwnRatio();
    out.own = ratio * entry->own / (1 + entry->shown * ratio);
    out.mean += out.own;
  }
  return out;
}

double ItemEffects::WorthOfTrying(const Effect& effect, double visits, double offered) const {
  if (!(effect.variance > 0)) return 0;
  return std::sqrt(effect.variance) * GittinsIndex(effect.variance / noise_ * visits * offered);
}

void ItemEffects::Refresh(Item& item) const {
  if (item.shared) {
    ItemSums all = item.shared->others;
    all.Add({.id = item.id, .groups = item.groups}, aliases_);
    item.shared->groups = std::move(all.groups);
  }
  item.weight = item.sum = 0;
  for (const Group& group : item.all_groups()) {
    const double w = 1 / (1 + group.weight * group_ratio_);
    item.weight += w * group.weight;
    item.sum += w * group.sum;
  }
}

void ItemEffects::Add(Item& item, const ItemHistory::Entry& entry) {
  const ModelId model = aliases_.Resolve(entry.model);
  auto group = std::ranges::find(item.groups, model, &Group::model);
  if (group == item.groups.end()) group = item.groups.insert(group, {.model = model});
  group->weight += entry.shown;
  group->sum += entry.sum;
  ++group->users;
  item.shown += entry.shown;
  item.reward += entry.reward;
  item.squares += entry.squares;
  item.own_products += entry.own_products;
  item.own_squares += entry.own_squares;
  own_products_ += entry.own_products;
  own_squares_ += entry.own_squares;
}

void ItemEffects::Remove(Item& item, const ItemHistory::Entry& entry) {
  const ModelId model = aliases_.Resolve(entry.model);
  const auto group = std::ranges::find(item.groups, model, &Group::model);
  if (group == item.groups.end()) return;
  group->weight -= entry.shown;
  group->sum -= entry.sum;
  if (--group->users == 0) item.groups.erase(group);
  item.shown -= std::min<std::uint64_t>(entry.shown, item.shown);
  item.reward -= entry.reward;
  item.squares -= entry.squares;
  item.own_products -= entry.own_products;
  item.own_squares -= entry.own_squares;
  own_products_ -= entry.own_products;
  own_squares_ -= entry.own_squares;
}

// Showing the item again tells how much the user's own showings before let expect of it: the
// regression of e on wH, of which υ is the slope, w = 1/(1 + Aυ).
void ItemEffects::Observe(ItemHistory& user, ItemId id, ModelId model, double residual,
                          double reward, const Effect& expected) {
  Item* const item = FindOrMake(id);
  if (item == nullptr) return;
  ItemHistory::Entry& entry = user.Touch(id, item->life);
  if (entry.shown > 0) Remove(*item, entry);
  entry.model = groups_ ? model : kNoModel;
  const double own = residual - (expected.mean - expected.own);
  if (entry.shown > 0) {
    const double before = entry.own / (1 + entry.shown * OwnRatio());
    entry.own_products = Float(entry.own_products + before * own);
    entry.own_squares = Float(entry.own_squares + before * before);
  }
  entry.own = Float(entry.own + own);
  residual -= expected.own;
  entry.sum += residual;
  entry.squares = static_cast<float>(entry.squares + residual * residual);
  entry.reward = static_cast<float>(entry.reward + reward);
  ++entry.shown;
  Add(*item, entry);
  Refresh(*item);
  if (const auto dropped = user.DropSurplus()) Withdraw(*dropped);
  ++count_;
  if (count_ + others_count_ >= next_) Learn();
}

void ItemEffects::Move(ItemHistory& user, ModelId from, ModelId to) {
  if (!groups_) return;
  for (ItemHistory::Entry& entry : user.entries()) {
    if (aliases_.Resolve(entry.model) != from) continue;
    const auto found = slots_.find(entry.item);
    const bool known = found != slots_.end() && items_[found->second].life == entry.life;
    if (known) Remove(items_[found->second], entry);
    entry.model = to;
    if (!known) continue;
    Add(items_[found->second], entry);
    Refresh(items_[found->second]);
  }
}

void ItemEffects::Withdraw(const ItemHistory::Entry& entry) {
  const auto found = slots_.find(entry.item);
  if (found == slots_.end() || items_[found->second].life != entry.life) return;
  Item& item = items_[found->second];
  Remove(item, entry);
  count_ -= std::min<std::uint64_t>(entry.shown, count_);
  if (item.groups.empty() && !item.shared) return Erase(found->second);
  if (item.groups.empty()) item.life = 0;
  Refresh(item);
}

void ItemEffects::Forget(const ItemHistory& user) {
  for (const ItemHistory::Entry& entry : user.entries()) Withdraw(entry);
  if (items_.empty()) {
    ItemEffects nothing(groups_);
    nothing.lives_ = lives_;  // users may still have entries of forgotten items
    nothing.aliases_ = std::move(aliases_);
    *this = std::move(nothing);
  } else {
    Learn();
  }
}

bool ItemEffects::ForgetItem(ItemId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return false;
  DropOthers(items_[found->second]);
  count_ -= std::min(items_[found->second].shown, count_);
  own_products_ -= items_[found->second].own_products;
  own_squares_ -= items_[found->second].own_squares;
  Erase(found->second);
  next_ = 0;  // with the next showing: many may be forgotten at once
  return true;
}

// ln p(all residuals) and of the steps beforehand, σ² being the likeliest, and that σ².
ItemEffects::Evidence ItemEffects::Weigh(int item_step, int group_step) const {
  const double item_ratio = RatioAt(item_step);
  const double group_ratio = RatioAt(group_step);
  double determinants = 0;
  double squares = 0;
  double shown = 0;
  for (const Item& item : items_) {
    double weight = 0;
    double sum = 0;
    double product = 1;
    squares += item.all_squares();
    shown += static_cast<double>(item.all_shown());
    for (const Group& group : item.all_groups()) {
      const double spread = 1 + group.weight * group_ratio;
      product *= spread;
      weight += group.weight / spread;
      sum += group.sum / spread;
      squares -= group_ratio * group.sum * group.sum / spread;
      if (product > 1e100) {
        determinants += std::log(product);
        product = 1;
      }
    }
    const double spread = 1 + item_ratio * weight;
    squares -= item_ratio * sum * sum / spread;
    determinants += std::log(product * spread);
  }
  const double noise = squares / shown;
  return {.log_posterior =
              -0.5 * (determinants + shown * std::log(noise)) + LogPrior(item_step, group_step),
          .noise = noise};
}

void ItemEffects::Learn() {
  const std::uint64_t count = count_ + others_count_;
  next_ = count + std::max(kFirst, count / kGrowth);
  double squares = 0;
  for (const Item& item : items_) squares += item.all_squares();
  if (!(squares > 0)) return;  // nothing has ever been off
  const double least = kLeastNoise * squares / static_cast<double>(count);
  Evidence best = Weigh(item_step_, group_step_);
  for (int move = 0; move < kMostMoves; ++move) {
    const int from_item = item_step_;
    const int from_group = group_step_;
    const auto consider = [&](int item_step, int group_step) {
      if (std::min(item_step, group_step) < 0 || std::max(item_step, group_step) >= kSteps) return;
      const Evidence there = Weigh(item_step, group_step);
      if (!(there.log_posterior > best.log_posterior) || !(there.noise > least)) return;
      best = there;
      item_step_ = item_step;
      group_step_ = group_step;
    };
    consider(from_item + 1, from_group);
    consider(from_item - 1, from_group);
    if (groups_) {
      consider(from_item, from_group + 1);
      consider(from_item, from_group - 1);
    }
    if (item_step_ == from_item && group_step_ == from_group) break;
  }
  noise_ = std::max(best.noise, least);
  TakeSteps();
}

// Before anything has been learned there are no effects.
void ItemEffects::TakeSteps() {
  item_ratio_ = noise_ > 0 ? RatioAt(item_step_) : 0;
  group_ratio_ = noise_ > 0 ? RatioAt(group_step_) : 0;
  for (Item& item : items_) Refresh(item);
}

std::optional<ItemDescription> ItemEffects::Describe(ItemId id) const {
  const Item* item = Find(id);
  if (item == nullptr) return std::nullopt;
  const Effect own = Of(id, {});
  ItemDescription out{.shown = item->all_shown(), .reward = item->reward, .effect = own.mean};
  if (item->shared) out.reward += item->shared->others.reward;
  out.width = std::sqrt(item_ratio_ / (1 + item_ratio_ * item->weight) * noise_);
  for (const Group& group : item->all_groups()) {
    const Share share{group.model, 1};
    const Effect effect = Of(id, {&share, 1});
    out.groups.push_back({.model = group.model,
                          .users = group.users,
                          .effect = effect.mean,
                          .width = std::sqrt(effect.variance)});
  }
  return out;
}

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
    if (!slots_.emplace(item.id, static_cast<std::uint32_t>(i)).second) {
      in.Fail("item", "appears twice");
    }
    Refresh(item);
    items_.push_back(std::move(item));
  }
}

void ItemEffects::Tally::Add(const ItemHistory& user) {
  for (const ItemHistory::Entry& entry : user.entries()) {
    const auto found = effects_.slots_.find(entry.item);
    if (found == effects_.slots_.end()) continue;
    if (effects_.items_[found->second].life == entry.life) shown_[found->second] += entry.shown;
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
