#include "codband/policy/item_effects.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codband/base/check.h"

namespace codband {
namespace {

// The grid of τ and ω: step 0 is 0, the others are powers of two.
constexpr int kStepOfOne = 13;
constexpr int kItemStep = 7;   // τ = 1/64, beforehand
constexpr int kGroupStep = 3;  // ω = 1/1024
constexpr int kMostMoves = 8;  // at a time

constexpr std::uint64_t kFirst = 16;  // showings before the variances are learned
constexpr std::uint64_t kGrowth = 8;  // and again after an eighth of all so far

// When there are too many items so many are looked at to find one that was shown least.
constexpr std::uint64_t kLookedAt = 8;
constexpr std::uint64_t kGoldenRatio = 0x9e37'79b9'7f4a'7c15;

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

// The variance, beside the noise's, of an item that is unlike the others.
constexpr double kWideRatio = 1;

double RatioAt(int step) { return step == 0 ? 0 : std::ldexp(1.0, step - kStepOfOne); }

// While hardly any item has been shown twice its effect cannot be told from noise.
double LogPrior(int item_step, int group_step) {
  const double item = (item_step - kItemStep) / 3.0;
  const double group = (group_step - kGroupStep) / 3.0;
  return -0.5 * (item * item + group * group);
}

}  // namespace

ItemEffects::ItemEffects(bool groups, std::size_t most)
    : groups_(groups), most_(most), item_step_(kItemStep), group_step_(groups ? kGroupStep : 0) {}

ItemEffects ItemEffects::WithRatios(Ratios ratios) {
  ItemEffects effects(true);
  effects.given_ = ratios;
  return effects;
}

void ItemEffects::Clear() {
  ItemEffects nothing(groups_, most_);
  nothing.given_ = given_;
  *this = std::move(nothing);
}

const ItemEffects::Item* ItemEffects::Find(ItemId id) const {
  const std::uint32_t slot = slots_.Find(id);
  return slot == ItemSlots::kNone ? nullptr : &items_[slot];
}

const ItemEffects::Item* ItemEffects::Find(const ItemHistory::Entry& entry) const {
  const Item* const item = Find(entry.item);
  return item != nullptr && item->life == entry.life ? item : nullptr;
}

ItemEffects::Item* ItemEffects::FindOrMake(ItemId id) {
  const std::uint32_t slot = slots_.Find(id);
  if (slot != ItemSlots::kNone) {
    Item& item = items_[slot];
    if (item.life == 0) item.life = ++lives_;
    return &item;
  }
  if (items_.size() >= most_) MakeRoom();
  return &Insert({.id = id, .life = ++lives_});
}

ItemEffects::Item& ItemEffects::Insert(Item item) {
  slots_.Set(item.id, static_cast<std::uint32_t>(items_.size()));
  gists_.emplace_back();
  return items_.emplace_back(std::move(item));
}

// One of a few anywhere on the list, by the number of lives so far: that decides it after a restart
// as well.
void ItemEffects::MakeRoom() {
  std::size_t least = items_.size();
  for (std::uint64_t i = 0; i < kLookedAt; ++i) {
    const std::uint64_t drawn = (kLookedAt * lives_ + i) * kGoldenRatio >> 32;
    const auto slot = static_cast<std::size_t>(drawn * items_.size() >> 32);
    if (least == items_.size() || items_[slot].all_shown() < items_[least].all_shown()) {
      least = slot;
    }
  }
  Drop(least);
}

void ItemEffects::Drop(std::size_t slot) {
  Item& item = items_[slot];
  DropOthers(item);
  count_ -= std::min(item.shown, count_);
  own_products_ -= item.own_products;
  own_squares_ -= item.own_squares;
  Erase(slot);
}

void ItemEffects::Erase(std::size_t slot) {
  slots_.Erase(items_[slot].id);
  if (slot + 1 < items_.size()) {
    items_[slot] = std::move(items_.back());
    gists_[slot] = gists_.back();
    slots_.Set(items_[slot].id, static_cast<std::uint32_t>(slot));
  }
  items_.pop_back();
  gists_.pop_back();
}

double ItemEffects::OwnRatio() const {
  if (!(noise_ > 0)) return 0;
  const double worth = kOwnWeight * noise_;
  const double slope = (own_products_ + kOwnRatio * worth) / (own_squares_ + worth);
  return std::clamp(slope, 0.0, kMostOwnRatio);
}

double ItemEffects::LogOddsToBeUnlike() const {
  const double unlike = 1 / static_cast<double>(items_.size() + 2);
  return std::log(unlike / (1 - unlike));
}

// A mixture of two Gaussians: the evidence of each is that of the sum H of residuals with weight A,
// H ~ N(0, Aσ²(1 + τA)).
ItemEffects::Terms ItemEffects::TermsOf(double weight, double sum) const {
  const double spread = 1 + item_ratio_ * weight;
  const double wide_spread = 1 + kWideRatio * weight;
  const double square = weight > 0 ? sum * sum / (weight * noise_) : 0;
  return {.weight = weight,
          .sum = sum,
          .log_spreads = 0.5 * std::log(wide_spread / spread),
          .square = 0.5 * square * (1 / spread - 1 / wide_spread)};
}

ItemEffects::Moments ItemEffects::OfItem(const Terms& terms, double log_odds) const {
  const double spread = 1 + item_ratio_ * terms.weight;
  const double wide_spread = 1 + kWideRatio * terms.weight;
  const double wide = 1 / (1 + std::exp(-(log_odds - terms.log_spreads + terms.square)));
  const double mean = item_ratio_ * terms.sum / spread;
  const double apart = kWideRatio * terms.sum / wide_spread - mean;
  return {.mean = mean + wide * apart,
          .variance = (1 - wide) * item_ratio_ / spread + wide * kWideRatio / wide_spread +
                      wide * (1 - wide) * apart * apart / noise_,
          .unlike = wide,
          .unlike_variance = kWideRatio / wide_spread};
}

ItemEffects::Effect ItemEffects::OfUnknown(double log_odds) const {
  const Moments own = OfItem({}, log_odds);
  return {.variance = (own.variance + group_ratio_) * noise_,
          .unlike = own.unlike,
          .unlike_variance = own.unlike_variance * noise_};
}

bool ItemEffects::FindGroup(std::size_t slot, ModelId model, Showings& out) const {
  const Gist& gist = gists_[slot];
  if (gist.groups == 0) return false;
  out = gist.first;
  if (out.model == model) return true;
  if (gist.groups == 1) return false;
  for (const Group& group : items_[slot].all_groups()) {
    if (group.model != model) continue;
    out = {.model = model, .weight = group.weight, .sum = group.sum};
    return true;
  }
  return false;
}

ItemEffects::Effect ItemEffects::OfKnown(std::size_t slot, const Moments& own,
                                         std::span<const Share> shares,
                                         const ItemHistory::Entry* entry) const {
  double mean = own.mean;
  double variance = own.variance + group_ratio_;
  if (group_ratio_ > 0) {
    Showings group;
    for (const Share& share : shares) {
      if (!FindGroup(slot, share.model, group)) continue;
      const double w = 1 / (1 + group.weight * group_ratio_);
      mean += share.chance * Apart(group, w, own);
      variance +=
          share.chance * (w * w * own.variance + group_ratio_ * w - own.variance - group_ratio_);
    }
  }
  Effect out{.mean = mean,
             .variance = variance * noise_,
             .known = true,
             .unlike = own.unlike,
             .unlike_variance = own.unlike_variance * noise_};
  if (entry != nullptr && entry->life == gists_[slot].life) {
    const double ratio = OwnRatio();
    out.own = ratio * entry->own / (1 + entry->shown * ratio);
    out.mean += out.own;
  }
  return out;
}

ItemEffects::Asked ItemEffects::Ask(ItemId id) const {
  Asked asked;
  if (!any()) return asked;
  asked.effects_ = this;
  asked.id_ = id;
  asked.log_odds_ = LogOddsToBeUnlike();
  asked.slot_ = slots_.Find(id);
  if (asked.slot_ != ItemSlots::kNone) {
    asked.own_ = OfItem(gists_[asked.slot_].terms, asked.log_odds_);
  }
  return asked;
}

ItemEffects::Effect ItemEffects::Of(ItemId id, std::span<const Share> shares,
                                    const ItemHistory* user) const {
  return Ask(id).Of(shares, user);
}

ItemEffects::Effect ItemEffects::Asked::Of(std::span<const Share> shares,
                                           const ItemHistory* user) const {
  if (effects_ == nullptr) return {};
  if (slot_ == ItemSlots::kNone) return effects_->OfUnknown(log_odds_);
  return effects_->OfKnown(slot_, own_, shares, user == nullptr ? nullptr : user->Find(id_));
}

double ItemEffects::Asked::MeanOn(ModelId model) const {
  if (slot_ == ItemSlots::kNone) return 0;
  Showings group;
  if (!(effects_->group_ratio_ > 0) || !effects_->FindGroup(slot_, model, group)) return own_.mean;
  return own_.mean + effects_->Apart(group, 1 / (1 + group.weight * effects_->group_ratio_), own_);
}

void ItemEffects::Refresh(Item& item) {
  if (item.shared) {
    ItemSums all = item.shared->others;
    all.Add({.id = item.id, .groups = item.groups}, aliases_);
    item.shared->groups = std::move(all.groups);
  }
  double weight = 0;
  double sum = 0;
  for (const Group& group : item.all_groups()) {
    const double w = 1 / (1 + group.weight * group_ratio_);
    weight += w * group.weight;
    sum += w * group.sum;
  }
  Gist& gist = gists_[static_cast<std::size_t>(&item - items_.data())];
  gist.terms = TermsOf(weight, sum);
  const std::vector<Group>& groups = item.all_groups();
  gist.groups = static_cast<std::uint32_t>(groups.size());
  gist.first = {};
  if (!groups.empty()) gist.first = {groups[0].model, groups[0].weight, groups[0].sum};
  gist.life = item.life;
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
    Item* const item = Find(entry);
    if (item != nullptr) Remove(*item, entry);
    entry.model = to;
    if (item == nullptr) continue;
    Add(*item, entry);
    Refresh(*item);
  }
}

void ItemEffects::TakeOutSince(ItemHistory& user, std::size_t showings) {
  for (const ItemHistory::Entry& entry : user.TakeSince(showings)) Withdraw(entry);
}

void ItemEffects::Withdraw(const ItemHistory::Entry& entry) {
  Item* const item = Find(entry);
  if (item == nullptr) return;
  Remove(*item, entry);
  count_ -= std::min<std::uint64_t>(entry.shown, count_);
  if (item->groups.empty() && !item->shared) {
    return Erase(static_cast<std::size_t>(item - items_.data()));
  }
  if (item->groups.empty()) item->life = 0;
  Refresh(*item);
}

void ItemEffects::Forget(const ItemHistory& user) {
  for (const ItemHistory::Entry& entry : user.entries()) Withdraw(entry);
  if (items_.empty()) {
    const std::uint32_t lives = lives_;  // users may still have entries of forgotten items
    ModelAliases aliases = std::move(aliases_);
    Clear();
    lives_ = lives;
    aliases_ = std::move(aliases);
  } else {
    Learn();
  }
}

bool ItemEffects::ForgetItem(ItemId id) {
  const std::uint32_t slot = slots_.Find(id);
  if (slot == ItemSlots::kNone) return false;
  Drop(slot);
  next_ = 0;  // with the next showing: many may be forgotten at once
  return true;
}

// ln p(all residuals), σ² being the likeliest, and that σ².
ItemEffects::Evidence ItemEffects::Weigh(Ratios ratios) const {
  const auto [item_ratio, group_ratio] = ratios;
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
  return {.log_likelihood = -0.5 * (determinants + shown * std::log(noise)), .noise = noise};
}

void ItemEffects::Learn() {
  const std::uint64_t count = count_ + others_count_;
  next_ = count + std::max(kFirst, count / kGrowth);
  double squares = 0;
  for (const Item& item : items_) squares += item.all_squares();
  if (!(squares > 0)) return;  // nothing has ever been off
  const double least = kLeastNoise * squares / static_cast<double>(count);
  const Evidence best = given_ ? Weigh(*given_) : ClimbSteps(least);
  noise_ = std::max(best.noise, least);
  TakeSteps();
}

// To the likeliest steps, from those of before.
ItemEffects::Evidence ItemEffects::ClimbSteps(double least_noise) {
  const auto weigh = [&](int item_step, int group_step) {
    Evidence there = Weigh({RatioAt(item_step), RatioAt(group_step)});
    there.log_likelihood += LogPrior(item_step, group_step);
    return there;
  };
  Evidence best = weigh(item_step_, group_step_);
  for (int move = 0; move < kMostMoves; ++move) {
    const int from_item = item_step_;
    const int from_group = group_step_;
    const auto consider = [&](int item_step, int group_step) {
      if (std::min(item_step, group_step) < 0 || std::max(item_step, group_step) >= kSteps) return;
      const Evidence there = weigh(item_step, group_step);
      if (!(there.log_likelihood > best.log_likelihood) || !(there.noise > least_noise)) return;
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
  return best;
}

// Before anything has been learned there are no effects.
void ItemEffects::TakeSteps() {
  Ratios ratios;
  if (noise_ > 0) ratios = given_.value_or(Ratios{RatioAt(item_step_), RatioAt(group_step_)});
  item_ratio_ = ratios.item;
  group_ratio_ = ratios.group;
  for (Item& item : items_) Refresh(item);
}

std::optional<ItemDescription> ItemEffects::Describe(ItemId id) const {
  const std::uint32_t slot = slots_.Find(id);
  if (slot == ItemSlots::kNone) return std::nullopt;
  const Item* const item = &items_[slot];
  const Effect own = Of(id, {});
  ItemDescription out{.shown = item->all_shown(), .reward = item->reward, .effect = own.mean};
  if (item->shared) out.reward += item->shared->others.reward;
  out.width = std::sqrt(OfItem(gists_[slot].terms, LogOddsToBeUnlike()).variance * noise_);
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

}  // namespace codband
