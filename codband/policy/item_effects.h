#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/item_history.h"
#include "codband/policy/item_slots.h"
#include "codband/policy/item_sums.h"
#include "codband/policy/policy.h"

namespace codband {

// Item effects: the part of a reward that the features do not explain,
//   e = b_item + b_(group, item) + noise,
// where e is the residual of a model of the features, and the effects are Gaussian and independent
// with the variances τσ² and ωσ² beside the noise σ². They are nested, so that their joint
// posterior given the residuals is exact and in closed form. With A showings to a group and the sum
// H of their residuals, and w = 1/(1 + Aω),
//   b_item           ~ N(τ ΣwH / (1 + τ ΣwA),  τσ² / (1 + τ ΣwA)),     sums over groups,
//   b_item + b_group ~ N(w (b_item + ωH),  w² var(b_item) + wωσ²).
// An item may be unlike those before it, with the variance σ² instead of τσ²: its effect is a
// mixture of the two, each counting by its evidence.
// docs/algorithms.md has the derivation; item_effects_test.cc compares with a dense computation.
//
// Beside them a user has favourites of their own. With A showings to the user and the sum H of what
// residuals were beyond the effects above at the time, υH / (1 + Aυ) is expected again, υ the slope
// of the regression of the next one on H / (1 + Aυ) over all repeated showings. The effects above
// learn from the residual without it.
//
// τ and ω are learned by empirical Bayes: the marginal likelihood of all residuals, σ profiled out,
// is climbed on a grid of powers of two and 0, anew whenever the data has grown by an eighth. The
// likelihood is valid whatever rule selected the items. Where items have no effect both go to 0,
// and so do the estimated effects.
//
// O(G) a reward for an item that G groups have seen, and amortised some tens of operations; to ask,
// O(G) for each model that the user may be on. An item costs about 290 bytes and 32 for each
// further group once it has been shown, nothing before. Beyond kMostItems a new one takes the place
// of one that was shown least of a few: ids that are made up displace each other.
//
// Saved and restored to the bit. Const functions may run concurrently, the others not.
class ItemEffects {
 public:
  static constexpr std::size_t kMostItems = std::size_t{1} << 20;

  // The variances of an item's effect, and of one to a group, as multiples of the noise's: τ and ω.
  struct Ratios {
    double item = 0;
    double group = 0;
  };

  // `groups`: whether the groups of a user may have their own favourites. `most`: items.
  explicit ItemEffects(bool groups, std::size_t most = kMostItems);
  // With variances that are given and not learned.
  static ItemEffects WithRatios(Ratios ratios);
  // Nothing has been shown.
  void Clear();

  // A model that a user may be on.
  struct Share {
    ModelId model;
    double chance;
  };
  struct Effect {
    double mean = 0;
    double variance = 0;
    double own = 0;      // the part of the mean that is the user's own
    bool known = false;  // the item has been shown
    // The chance that the item is unlike the others, and its variance then.
    double unlike = 0;
    double unlike_variance = 0;
  };
  // For a user who may be on these models; their chances add up to at most 1. `user`: what they
  // brought so far; nullptr: nothing.
  Effect Of(ItemId item, std::span<const Share> shares, const ItemHistory* user = nullptr) const;

  // To ask of one item for several models. Valid until anything changes.
  class Asked;
  Asked Ask(ItemId item) const;

  // For every item on offer the mean and the variance of its effect, and what it is compared by:
  // the mean and what trying it is worth (WorthOfTrying, with so many `visits`; items on offer are
  // those that are here now). kNoItem has no effect. All have a place for each item. `slots` is the
  // memory that it works in.
  struct Ratings {
    std::span<double> means;
    std::span<double> variances;
    std::span<double> scores;
  };
  void Rate(std::span<const ItemId> items, std::span<const Share> shares, const ItemHistory* user,
            double visits, std::vector<std::uint32_t>& slots, const Ratings& out) const;

  // What showing an item is worth beyond its mean: the Gittins index of a Gaussian arm less its
  // mean, by the approximation of Brezzi & Lai (2002), with as many visits ahead of a group as it
  // had so far, in a share `offered` of which the item is on offer. Of an item that may be unlike
  // the others it is at least what it would be if that were so, with as many visits as that is
  // likely.
  double WorthOfTrying(const Effect& effect, double visits, double offered) const;
  // That share, where so many of the arms on offer are known: of the known items, those that are
  // here now. Where the whole catalogue is always on offer it is 1 from the start; where a few of
  // many are, it is small, however few of them are known yet.
  double ShareOffered(std::size_t known_arms) const {
    return static_cast<double>(known_arms + 1) / static_cast<double>(size() + 1);
  }

  // An item was shown to a user who is taken to be in the group `model`, and earned `reward`;
  // `residual` is the error of the prediction from the features alone, `expected` the effect that
  // was expected.
  void Observe(ItemHistory& user, ItemId item, ModelId model, double residual, double reward,
               const Effect& expected);
  // What the user brought counts for another group from now on.
  void Move(ItemHistory& user, ModelId from, ModelId to);
  // Takes out what the user brought to the items of their last showings.
  void TakeOutSince(ItemHistory& user, std::size_t showings);
  // Takes out all that the user brought.
  void Forget(const ItemHistory& user);
  // Returns whether it was known.
  bool ForgetItem(ItemId item);

  std::size_t size() const { return items_.size(); }
  std::uint64_t showings() const { return count_; }
  double item_variance() const { return item_ratio_ * noise_; }
  double group_variance() const { return group_ratio_ * noise_; }
  double noise_variance() const { return noise_; }

  // For display.
  std::optional<ItemDescription> Describe(ItemId item) const;

  // What was estimated, without the items.
  void SaveEstimates(ByteWriter& out) const;
  // `has_own`: with what is the users' own, which states before format 6 lack.
  void LoadEstimates(ByteReader& in, bool has_own);
  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

  // Partitions (shared_pool.h): the own sums of all items, in the order of ids, and those of
  // others, which replace what others had. Groups go by other names from then on.
  std::vector<ItemSums> OwnSums() const;
  void Import(std::span<const ItemSums> others, const ModelAliases& aliases);
  // All that is known are these own sums, of items with these lives, of which the last one that was
  // given out is told; nothing is known of others. What was estimated stays.
  struct Lives {
    std::vector<std::uint32_t> of_items = {};
    std::uint32_t last = 0;
  };
  void Hold(std::span<const ItemSums> own, const Lives& lives);
  // Whether the entry counts for an item: it has not been forgotten since.
  bool Counts(const ItemHistory::Entry& entry) const { return Find(entry) != nullptr; }
  std::uint32_t LifeOf(ItemId item) const;  // 0: it was not shown here
  std::uint32_t lives() const { return lives_; }
  // What Save leaves out: of partitions alone. `aliases`: of all models.
  void SaveOthers(ByteWriter& out) const;
  void LoadOthers(ByteReader& in, const ModelAliases& aliases);

  // Counts what users' histories say of the items, to compare with what is known of them.
  class Tally {
   public:
    explicit Tally(const ItemEffects& effects) : effects_(effects), shown_(effects.size()) {}
    void Add(const ItemHistory& user);
    // What does not add up; empty if all does.
    std::string Fault() const;

   private:
    const ItemEffects& effects_;
    std::vector<std::uint64_t> shown_;
  };

 private:
  using Group = ItemSums::Group;  // A, H, and how many users they are from
  // What other partitions know of an item, and its groups in all of them.
  struct Shared {
    ItemSums others;
    std::vector<Group> groups;
  };
  // What follows from the groups of an item for its own effect: ΣwA and ΣwH, and of the evidence
  // that it is unlike the others (OfItem) what needs a logarithm or does not change with what is
  // asked.
  struct Terms {
    double weight = 0;
    double sum = 0;
    double log_spreads = 0;
    double square = 0;
  };
  // What a group was shown of an item: A and H.
  struct Showings {
    ModelId model = kNoModel;
    double weight = 0;
    double sum = 0;
  };
  // What a ranking reads of an item, in one line of memory: a catalogue may be ranked as a whole.
  // Follows from the item (Refresh).
  struct alignas(64) Gist {
    Terms terms = {};
    Showings first = {};  // of its groups; mostly there are few
    std::uint32_t groups = 0;
    std::uint32_t life = 0;
  };
  struct Item {
    std::vector<Group> groups = {};
    std::unique_ptr<Shared> shared = {};
    ItemId id;
    std::uint32_t life;  // 0: shown by others alone
    std::uint64_t shown = 0;
    double reward = 0;
    double squares = 0;  // of residuals
    double own_products = 0;
    double own_squares = 0;

    const std::vector<Group>& all_groups() const { return shared ? shared->groups : groups; }
    std::uint64_t all_shown() const { return shown + (shared ? shared->others.shown : 0); }
    double all_squares() const { return squares + (shared ? shared->others.squares : 0); }
  };

  // Of an item's own effect, given ΣwA and ΣwH; the variance as a multiple of the noise's.
  struct Moments {
    double mean = 0;
    double variance = 0;
    double unlike = 0;  // the chance that it is unlike the others, and its variance then
    double unlike_variance = 0;
  };
  Terms TermsOf(double weight, double sum) const;
  // `log_odds`: of LogOddsToBeUnlike().
  Moments OfItem(const Terms& terms, double log_odds) const;
  // Each item may be unlike those before it, by the rule of succession.
  double LogOddsToBeUnlike() const;
  // Whether items may have effects at all.
  bool any() const { return item_ratio_ + group_ratio_ > 0; }
  Effect OfUnknown(double log_odds) const;
  Effect OfKnown(std::size_t slot, const Moments& own, std::span<const Share> shares,
                 const ItemHistory::Entry* entry) const;
  // Whether a group was shown the item, and then what.
  bool FindGroup(std::size_t slot, ModelId model, Showings& out) const;
  // The mean to users of the group less that of the item.
  double Apart(const Showings& group, double w, const Moments& own) const {
    return w * (own.mean + group_ratio_ * group.sum) - own.mean;
  }
  // Where the items are; returns how many are known.
  std::size_t Locate(std::span<const ItemId> items, std::vector<std::uint32_t>& slots) const;

  Item* FindOrMake(ItemId id);
  Item& Insert(Item item);
  void MakeRoom();
  const Item* Find(ItemId id) const;
  // nullptr if the item has been forgotten since.
  const Item* Find(const ItemHistory::Entry& entry) const;
  Item* Find(const ItemHistory::Entry& entry) {
    return const_cast<Item*>(std::as_const(*this).Find(entry));
  }
  // The item is no longer known.
  void Drop(std::size_t slot);
  void Erase(std::size_t slot);
  void DropOthers(Item& item);
  void TakeOthers(std::span<const ItemSums> others);
  void Rename(Item& item) const;
  // The entry's part comes to the item, or leaves it.
  void Add(Item& item, const ItemHistory::Entry& entry);
  void Remove(Item& item, const ItemHistory::Entry& entry);
  void Withdraw(const ItemHistory::Entry& entry);
  void Refresh(Item& item);

  struct Evidence {
    double log_likelihood;
    double noise;
  };
  Evidence Weigh(Ratios ratios) const;
  void Learn();
  Evidence ClimbSteps(double least_noise);
  void TakeSteps();

  // υ: how much of what a user's showings of an item were off by is expected of the next one.
  double OwnRatio() const;

  bool groups_;
  std::size_t most_;
  std::vector<Item> items_;
  std::vector<Gist> gists_;  // one for each item
  ItemSlots slots_;
  std::uint32_t lives_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 16;
  // The grid of the variances' ratios: up to 1, since with more a single showing would decide.
  static constexpr int kSteps = 14;
  int item_step_;
  int group_step_;
  std::optional<Ratios> given_;  // instead of what the steps say
  double item_ratio_ = 0;        // τ
  double group_ratio_ = 0;       // ω
  double noise_ = 0;             // σ²
  double own_products_ = 0;
  double own_squares_ = 0;
  std::uint64_t others_count_ = 0;  // of the showings in all partitions
  ModelAliases aliases_;
};

// One item (Ask).
class ItemEffects::Asked {
 public:
  Asked() = default;

  Effect Of(std::span<const Share> shares, const ItemHistory* user = nullptr) const;
  // The mean for users on the model, without what is theirs alone.
  double MeanOn(ModelId model) const;

 private:
  friend class ItemEffects;

  const ItemEffects* effects_ = nullptr;   // nullptr: there are none
  std::uint32_t slot_ = ItemSlots::kNone;  // kNone: not known
  ItemId id_ = kNoItem;
  double log_odds_ = 0;
  Moments own_ = {};
};

}  // namespace codband
