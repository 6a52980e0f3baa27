// What is known of many items at once: all that are on offer.
#include <algorithm>
#include <cmath>

#include "codband/policy/gittins_index.h"
#include "codband/policy/item_effects.h"

namespace codband {
namespace {

// Memory is asked for so many items ahead.
constexpr std::size_t kAhead = 32;

}  // namespace

double ItemEffects::WorthOfTrying(const Effect& effect, double visits, double offered) const {
  if (!(effect.variance > 0)) return 0;
  const double usual =
      std::sqrt(effect.variance) * GittinsIndex(effect.variance / noise_ * visits * offered);
  // The index of s is at most √(s/2): mostly that is enough to see that the other is less.
  const double s = effect.unlike_variance / noise_ * effect.unlike * visits * offered;
  if (0.51 * effect.unlike_variance * s < usual * usual) return usual;
  return std::max(usual, std::sqrt(effect.unlike_variance) * GittinsIndex(s));
}

std::size_t ItemEffects::Locate(std::span<const ItemId> items,
                                std::vector<std::uint32_t>& slots) const {
  slots.resize(items.size());
  std::size_t known = 0;
  for (std::size_t i = 0; i < std::min(kAhead, items.size()); ++i) slots_.Prefetch(items[i]);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) slots_.Prefetch(items[i + kAhead]);
    slots[i] = slots_.Find(items[i]);
    known += slots[i] == ItemSlots::kNone ? 0 : 1;
  }
  return known;
}

void ItemEffects::Rate(std::span<const ItemId> items, std::span<const Share> shares,
                       const ItemHistory* user, double visits, std::vector<std::uint32_t>& slots,
                       const Ratings& out) const {
  if (!any()) {
    for (const std::span<double> each : {out.means, out.variances, out.scores}) {
      std::ranges::fill(each, 0.0);
    }
    return;
  }
  const double offered = ShareOffered(Locate(items, slots));
  const double log_odds = LogOddsToBeUnlike();
  // Of all that are unknown it is the same.
  const Effect unknown = OfUnknown(log_odds);
  const double worth_of_unknown = WorthOfTrying(unknown, visits, offered);
  const auto prefetch = [&](std::size_t i) {
    if (i < items.size() && slots[i] != ItemSlots::kNone) __builtin_prefetch(&gists_[slots[i]]);
  };
  for (std::size_t i = 0; i < kAhead; ++i) prefetch(i);
  for (std::size_t i = 0; i < items.size(); ++i) {
    prefetch(i + kAhead);
    Effect effect;
    double worth = 0;
    if (slots[i] != ItemSlots::kNone) {
      effect = OfKnown(slots[i], OfItem(gists_[slots[i]].terms, log_odds), shares,
                       user == nullptr ? nullptr : user->Find(items[i]));
      worth = WorthOfTrying(effect, visits, offered);
    } else if (items[i] != kNoItem) {
      effect = unknown;
      worth = worth_of_unknown;
    }
    out.means[i] = effect.mean;
    out.variances[i] = effect.variance;
    out.scores[i] = effect.mean + worth;
  }
}

}  // namespace codband
