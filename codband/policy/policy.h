#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/linalg/packed.h"
#include "codband/policy/propensity.h"

namespace codband {

class LearnMemo;
class PagedUsers;
class SharedPool;

using UserId = std::uint64_t;
using ModelId = std::uint64_t;
using ItemId = std::uint64_t;

// The largest number of features of an arm. A model may add an intercept of its own.
inline constexpr std::size_t kMaxFeatures = linalg::kMaxDimension - 1;

// The largest absolute value of a feature or a reward: squares and sums of larger ones may
// overflow.
inline constexpr double kLargestNumber = 1e15;

// Whoever visits without an id. All of them are one user to a policy, whom it learns from like from
// any other and who can be forgotten; but they are many, who neither change nor agree. Policies
// that assign users to shared models (codband) therefore keep a model for them alone, never look
// for changes in them, and rank for them by the mixture of all models, in which theirs counts by
// how many visits it knows of: the pool where they are few, themselves where they are many.
inline constexpr UserId kNobody = std::numeric_limits<UserId>::max();

// The model of a decision made under no model, or under one that does not exist yet.
inline constexpr ModelId kNoModel = std::numeric_limits<ModelId>::max();

// The item of an arm that has no id.
inline constexpr ItemId kNoItem = std::numeric_limits<ItemId>::max();

// The arms on offer: `count()` feature vectors of `dim` numbers, row-major, and the items that they
// are, if known: one for each arm, or none at all. An item keeps its id when its features change.
// Borrows; no copy.
struct ArmsView {
  std::span<const double> features;
  std::size_t dim = 0;
  std::span<const ItemId> items = {};

  std::size_t count() const { return dim == 0 ? 0 : features.size() / dim; }
  std::span<const double> arm(std::size_t i) const { return features.subspan(i * dim, dim); }
  ItemId item(std::size_t i) const { return items.empty() ? kNoItem : items[i]; }
  // An offer of arm i alone.
  ArmsView only(std::size_t i) const {
    return {arm(i), dim, items.empty() ? items : items.subspan(i, 1)};
  }
};

// What was chosen, with all that learning from it needs. Plain data: it may be stored, and its
// reward may arrive after seconds or days, in any order, after a restart.
struct Decision {
  UserId user = 0;
  std::uint32_t arm = 0;         // index among the arms on offer
  std::vector<double> features;  // of the chosen arm
  ItemId item = kNoItem;         // that the chosen arm is
  ModelId model = kNoModel;      // the model that it was made under
  std::uint32_t period = 0;      // the user's period: the number of changes detected before
  double mean = 0;               // expected reward
  double width = 0;              // standard deviation of that expectation
  double score = 0;              // what the arms were compared by
  // The probability with which this arm was chosen from these arms in this state: 1 for a
  // deterministic policy; NaN where the policy has no closed form for it, see Policy::Rank.
  double propensity = std::numeric_limits<double>::quiet_NaN();
};

// How a policy rates every arm on offer, and its choice.
struct Ranking {
  struct Arm {
    double mean = 0;         // expected reward
    double item = 0;         // the part of it that is the item's own, beyond its features
    double width = 0;        // standard deviation of that expectation
    double score = 0;        // what the arms are ordered by
    double probability = 0;  // with which the arm is chosen in this state
  };
  Decision decision;          // the choice; its propensity is the arm's probability
  std::vector<Arm> arms;      // in the order of the offer
  std::vector<double> theta;  // the parameter behind the means; empty if there is none
  // mean = features · theta + intercept + the item's own part, the features times their
  // FeatureWeight. codband treats 0 in a centred column as missing, and of clicks weighs centred
  // columns without their centres, which this identity ignores (docs/algorithms.md, Units)
  double intercept = 0;
  std::size_t draws = 0;  // samples that the probabilities were estimated from; 0: closed form
};

// What learning from one reward led to.
struct LearnOutcome {
  bool change_detected = false;  // the user's preference has changed, in the policy's judgement
  ModelId before = kNoModel;     // where models are shared: the user's model before and after
  ModelId after = kNoModel;
};

// One model, for display.
struct ModelDescription {
  ModelId id = kNoModel;
  std::uint64_t periods = 0;  // current and past periods of users that it was learned from
  std::uint64_t users = 0;    // users whose current period is assigned to it
  std::uint64_t observations = 0;
  std::vector<double> theta;
  double intercept = 0;
};

// The model that a user is assigned to, for display.
struct UserDescription {
  ModelId model = kNoModel;
  double chance = 0;               // posterior probability of the assignment
  std::uint64_t observations = 0;  // since the last detected change
};

// What was learned of an item itself, beyond its features, for display.
struct ItemDescription {
  struct Group {
    ModelId model = kNoModel;
    std::uint64_t users = 0;  // who were shown it
    double effect = 0;        // the item's own included
    double width = 0;
  };
  std::uint64_t shown = 0;
  double reward = 0;  // the sum
  double effect = 0;  // expected reward beyond what the features say
  double width = 0;   // standard deviation of that expectation
  std::vector<Group> groups = {};
};

// A bandit policy: chooses one of the arms for a user, and learns from the reward.
//
// Choosing changes nothing, so that any number of threads may choose at the same time; learning,
// forgetting and loading need exclusive access. Every draw is a function of the key and the state:
// the caller passes a different key.event for each event, and may use the same key for the choice
// and its reward (the two use different streams).
//
// Misuse (a wrong dimension, NaN, no arms) throws std::invalid_argument that names the field, the
// value and what is expected, before anything is changed.
//
// docs/adding_a_policy.md shows how to write one.
class Policy {
 public:
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  std::size_t dim() const { return dim_; }

  // The name and every parameter, as the registry understands them: "linucb:alpha=0.6,lambda=0.1".
  const std::string& spec() const { return spec_; }
  void set_spec(std::string spec) { spec_ = std::move(spec); }  // for the registry

  // Chooses an arm and describes the choice in `decision`, whose memory is reused.
  void Choose(UserId user, ArmsView arms, EventKey key, Decision& decision) const;
  Decision Choose(UserId user, ArmsView arms, EventKey key) const;

  // Chooses an arm like Choose, and scores every arm. With probability `floor` the choice is
  // uniformly random. The choice is drawn from the reported probabilities, so they are exact
  // propensities even where they only approximate those of Choose (Ranking::draws). In general they
  // depend on the key, and are exact given the draws behind them; where a policy says so (codband),
  // they depend on state, user, arms and floor alone. Precondition: 0 ≤ floor ≤ 1.
  void Rank(UserId user, ArmsView arms, EventKey key, double floor, Ranking& ranking) const;

  // Learns that `decision` brought `reward`. The decision was made by this policy, or by one that
  // this one was restored from; if it has fewer features than dim(), the others are 0. `memo` lets
  // a second copy of the policy replay what the first one computed (learn_memo.h); nullptr for
  // none.
  LearnOutcome Learn(const Decision& decision, double reward, EventKey key,
                     LearnMemo* memo = nullptr);

  // From now on arms have `dim` features. New features are appended and count as 0
  // in all past observations: exact, as if they had always been there. Parameters that were made
  // from the dimension stay as they are. Exclusive access, like learning. Precondition: dim() ≤ dim
  // ≤ kMaxFeatures.
  void Grow(std::size_t dim);

  // Removes all that was learned from this user, past periods included, as if they had never been
  // there (up to rounding). Returns false if the user is unknown. A reward for a decision made
  // before counts as that of a new user.
  virtual bool Forget(UserId user) = 0;

  // Removes what was learned of this item itself, beyond its features: if it comes again it is a
  // new one. Returns false if nothing was. The default is for policies that learn nothing of items.
  virtual bool ForgetItem(ItemId) { return false; }

  // The number of models.
  virtual std::size_t model_count() const = 0;

  // All state as bytes; see state_file.h for the envelope. Loading goes into a freshly made policy
  // with the same spec and at most as many features, which grows to the saved ones; failures are
  // recorded in the reader. Before format 5 the dimension is not stored: as many as the policy has.
  void SaveState(ByteWriter& out) const;
  void LoadState(ByteReader& in);

  // For display; empty unless the policy shares models.
  virtual std::vector<ModelDescription> DescribeModels() const { return {}; }
  virtual std::optional<UserDescription> DescribeUser(UserId) const { return std::nullopt; }
  virtual std::optional<ItemDescription> DescribeItem(ItemId) const { return std::nullopt; }
  // What users on the model are expected to give for the item beyond what its features say.
  virtual double ItemEffectOn(ModelId, ItemId) const { return 0; }

  // What the features of an arm are multiplied by before a parameter (Ranking::theta,
  // ModelDescription::theta) is applied to them. Precondition: features.size() == dim().
  virtual double FeatureWeight(std::span<const double> /*features*/) const { return 1; }

  // The capability to keep only recently active users in memory (paged_users.h); nullptr: the
  // policy keeps all of its state in memory.
  virtual PagedUsers* paged_users() { return nullptr; }

  // The capability to learn together with other instances (shared_pool.h); nullptr: it cannot.
  virtual SharedPool* shared_pool() { return nullptr; }

 protected:
  // Precondition: 0 < dim ≤ kMaxFeatures.
  explicit Policy(std::size_t dim);

  // What a state begins with since format 5: its number of features. Loading grows to it; false if
  // the state is older and has none.
  void SaveDim(ByteWriter& out) const;
  bool LoadDim(ByteReader& in);

 private:
  // Chooses an arm and returns how likely that choice was; Choose sets the features and the
  // propensity of the decision. The arguments have been validated; `decision` has its user set and
  // everything else reset. Must not allocate.
  virtual Propensity DoChoose(UserId user, ArmsView arms, EventKey key,
                              Decision& decision) const = 0;
  // Rates every arm and chooses, without the floor; `ranking.arms` has a place for each arm. The
  // default calls DoChoose: on each arm alone for its score, and repeatedly where DoChoose does not
  // tell the probability of every arm.
  virtual void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const;
  virtual LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                               LearnMemo* memo) = 0;
  // See Grow; dim() is still what it was.
  virtual void DoGrow(std::size_t dim) = 0;
  virtual void DoSaveState(ByteWriter& out) const = 0;
  virtual void DoLoadState(ByteReader& in) = 0;

  std::size_t dim_;
  std::string spec_;
  Decision padded_;  // scratch of Learn
};

}  // namespace codband
