#include "codband/sim/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "codband/base/random.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband::sim {
namespace {

// Purposes of the environment's random streams; disjoint from those of policies, which may use the
// same seed.
enum class Purpose : std::uint64_t {
  kArmPool = 1000,
  kParameter = 1001,  // event: how many there are already
  kFirstModel = 1002,
  kPeriod = 1003,  // event: visit number
  kNextModel = 1004,
  kVisit = 1005,  // arms and Gaussian noise
  kVisitor = 1006,
  kLuck = 1007,  // not kVisit, so that the arms do not depend on the kind of reward
  kCommonDirection = 1008,
  kItemEffect = 1009,       // event: the arm
  kGroupItemEffect = 1010,  // event: the arm and the parameter
  kContext = 1011,
  kIndividual = 1012,  // event: the user
};

// The concentration of setting 1, and the least distance between parameters.
constexpr double kConcentration = 4;
constexpr double kLeastDistanceDirichlet = 0.9;
constexpr double kLeastDistanceFixed = 0.85;
constexpr int kPlacementAttempts = 10000;

// Up to so many arms are drawn one by one.
constexpr std::size_t kFewArms = 100;

// Parameters of a population with a separation lie at least this share of it apart.
constexpr double kLeastShareOfSeparation = 0.75;

double Distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Spherical interpolation: the point at `share` of the geodesic from a to b, both of norm 1.
void Interpolate(std::span<const double> a, std::span<const double> b, double share,
                 std::span<double> out) {
  const double angle = std::acos(std::clamp(linalg::Dot(a, b), -1.0, 1.0));
  const double sine = std::sin(angle);
  // Equal points, or opposite ones without a unique geodesic: jump to the nearer end.
  if (sine < 1e-9) {
    std::ranges::copy(share < 0.5 ? a : b, out.begin());
    return;
  }
  const double of_a = std::sin((1 - share) * angle) / sine;
  const double of_b = std::sin(share * angle) / sine;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = of_a * a[i] + of_b * b[i];
}

class Synthetic final : public Environment {
 public:
  Synthetic(const SyntheticOptions& options, std::uint64_t seed)
      : options_(options),
        rewards_(options.rewards, options.noise, options.click_rate),
        seed_(seed),
        arm_pool_({.size = options.pool,
                   .dim = options.dim / (1 + options.contexts),
                   .kind = options.features,
                   .life = options.item_life},
                  seed, static_cast<std::uint64_t>(Purpose::kArmPool)) {
    if (options_.order == VisitOrder::kZipf) {
      double sum = 0;
      for (std::size_t u = 0; u < options_.users; ++u) {
        sum += 1 / static_cast<double>(u + 1);
        visits_up_to_.push_back(sum);
      }
    }
    if (options_.separation) {
      common_direction_.resize(options_.dim);
      Stream(Purpose::kCommonDirection, 0).FillNormal(common_direction_);
      Normalise(common_direction_);
    }
  }

  // Draws the first parameters and gives each user one of them.
  Status Start() {
    for (std::size_t k = 0; k < options_.models; ++k) {
      if (!AddParameter(parameters_)) {
        return Status::InvalidArgument(fmt::format(
            "models = {}: no room for more than {} parameters at distance {} in {} dimensions",
            options_.models, k, least_distance(), options_.dim));
      }
    }
    assignments_.assign(options_.models, 0);
    users_.resize(options_.users);
    for (std::size_t u = 0; u < users_.size(); ++u) {
      users_[u].model = Stream(Purpose::kFirstModel, u).Below(options_.models);
      users_[u].period = DrawPeriod(u);
      ++assignments_[users_[u].model];
    }
    if (options_.individual > 0) {
      own_tastes_.resize(options_.users * options_.dim);
      const double deviation = std::sqrt(options_.individual / static_cast<double>(options_.dim));
      for (std::size_t u = 0; u < users_.size(); ++u) {
        RandomStream random = Stream(Purpose::kIndividual, u);
        for (std::size_t i = 0; i < options_.dim; ++i) {
          own_tastes_[u * options_.dim + i] = deviation * random.Normal();
        }
      }
    }
    if (options_.drift) {
      positions_.resize(options_.users * options_.dim);
      for (std::size_t u = 0; u < users_.size(); ++u) SetOut(u);
    }
    return {};
  }

  std::size_t dim() const override { return options_.dim; }
  std::size_t user_count() const override { return options_.users; }
  std::size_t round_count() const override { return options_.rounds; }
  double noise() const override { return rewards_.deviation(); }
  PartitionOptions partitions() const override {
    return {.partitions = options_.partitions,
            .publish_min_ms = options_.publish_min_ms,
            .publish_max_ms = options_.publish_max_ms,
            .pool_delay_ms = options_.pool_delay_ms,
            .users = options_.users};
  }

  std::size_t model_count() const override { return parameters_.size(); }
  std::span<const double> parameter(std::size_t model) const override { return parameters_[model]; }
  std::size_t model_of(UserId user) const override { return users_[user].model; }
  bool changed(UserId user) const override { return users_[user].changed; }

  double hazard() const override {
    if (options_.setting == Setting::kStationary) return 0;
    return std::min(1.0, 2.0 / static_cast<double>(options_.period_min + options_.period_max));
  }

  void StartRound(std::size_t round) override {
    round_ = round;
    arm_pool_.StartRound(round);
    for (std::size_t u = 0; u < users_.size(); ++u) {
      const std::size_t before = users_[u].model;
      if (options_.drift) {
        Drift(u);
      } else if (options_.setting != Setting::kStationary && period_is_over(users_[u])) {
        users_[u].model = DrawNextModel(u);
        StartPeriod(u);
        ++assignments_[users_[u].model];
      }
      users_[u].changed = users_[u].model != before;
    }
  }

  void MakeVisit(std::size_t slot, Visit& visit) const override {
    RandomStream random = Stream(Purpose::kVisit, VisitNumber(slot));
    visit.user = Visitor(slot);
    const Luck luck{.normal = random.Normal(),
                    .uniform = Stream(Purpose::kLuck, VisitNumber(slot)).Uniform()};
    visit.arms.resize(options_.arms * options_.dim);
    visit.means.resize(options_.arms);
    visit.rewards.resize(options_.arms);
    visit.items.clear();
    DrawArms(random);
    const std::size_t context =
        options_.contexts == 0
            ? 0
            : Stream(Purpose::kContext, VisitNumber(slot)).Below(options_.contexts);
    const std::span<const double> parameter = parameter_of(visit.user);
    for (std::size_t i = 0; i < options_.arms; ++i) {
      const std::span<double> features =
          std::span(visit.arms).subspan(i * options_.dim, options_.dim);
      CopyFeatures(chosen_[i], context, features);
      const std::uint64_t item = arm_pool_.number(chosen_[i]);
      if (has_items()) visit.items.push_back(item);
      const double fit = linalg::Dot(features, parameter) + EffectOf(item, visit.user) +
                         OwnTaste(visit.user, features);
      visit.means[i] = rewards_.Mean(fit);
      visit.rewards[i] = rewards_.Reward(fit, luck);
    }
  }

 private:
  struct User {
    std::size_t model = 0;
    std::size_t last_change = 0;
    std::size_t period = 0;
    bool changed = false;
    // Of a drifting user: the models at the ends of the geodesic.
    std::size_t from = 0;
    std::size_t to = 0;
  };

  bool has_items() const { return options_.item_effects || options_.group_item_effects; }
  std::uint64_t items_ever() const {
    if (options_.item_life == 0) return options_.pool;
    return options_.pool * (2 + options_.rounds / options_.item_life);
  }

  // Different ones, into chosen_.
  void DrawArms(RandomStream& random) const {
    chosen_.clear();
    if (options_.pool > kFewArms && 2 * options_.arms > options_.pool) {
      // Most of them: a part of a random order.
      chosen_.resize(options_.pool);
      std::iota(chosen_.begin(), chosen_.end(), std::size_t{0});
      for (std::size_t i = 0; i < options_.arms; ++i) {
        std::swap(chosen_[i], chosen_[i + random.Below(options_.pool - i)]);
      }
      chosen_.resize(options_.arms);
      return;
    }
    while (chosen_.size() < options_.arms) {
      const std::size_t arm = random.Below(options_.pool);
      if (std::ranges::find(chosen_, arm) == chosen_.end()) chosen_.push_back(arm);
    }
  }

  void CopyFeatures(std::size_t arm, std::size_t context, std::span<double> out) const {
    const std::span<const double> features = arm_pool_.features(arm);
    std::ranges::copy(features, out.begin());
    if (options_.contexts == 0) return;
    std::ranges::fill(out.subspan(features.size()), 0.0);
    const std::size_t place = (1 + context) * features.size();
    std::ranges::copy(features, out.begin() + static_cast<std::ptrdiff_t>(place));
    for (double& value : out) value /= std::numbers::sqrt2;
  }

  // What the user likes in these features beyond what others of the same parameter do.
  double OwnTaste(UserId user, std::span<const double> features) const {
    if (own_tastes_.empty()) return 0;
    return linalg::Dot(features, std::span(own_tastes_).subspan(user * options_.dim, options_.dim));
  }

  double EffectOf(std::uint64_t arm, UserId user) const {
    double effect = 0;
    if (const double variance = options_.item_effects.value_or(0); variance > 0) {
      effect += std::sqrt(variance) * Stream(Purpose::kItemEffect, arm).Normal();
    }
    if (const double variance = options_.group_item_effects.value_or(0); variance > 0) {
      const std::uint64_t pair = arm + items_ever() * users_[user].model;
      effect += std::sqrt(variance) * Stream(Purpose::kGroupItemEffect, pair).Normal();
    }
    return effect;
  }

  RandomStream Stream(Purpose purpose, std::uint64_t event) const {
    return {{.seed = seed_, .event = event}, static_cast<std::uint64_t>(purpose)};
  }

  // Numbers the slots of all rounds; draws of a user are numbered alike.
  std::uint64_t VisitNumber(std::size_t slot) const { return round_ * options_.users + slot; }

  UserId Visitor(std::size_t slot) const {
    if (options_.order == VisitOrder::kTurn) return slot;
    RandomStream random = Stream(Purpose::kVisitor, VisitNumber(slot));
    if (options_.order == VisitOrder::kRandom) return random.Below(options_.users);
    const double drawn = random.Uniform() * visits_up_to_.back();
    const auto found = std::ranges::upper_bound(visits_up_to_, drawn);
    return std::min<UserId>(static_cast<UserId>(found - visits_up_to_.begin()), options_.users - 1);
  }

  bool period_is_over(const User& user) const { return round_ > user.last_change + user.period; }

  void StartPeriod(std::size_t user) {
    users_[user].last_change = round_;
    users_[user].period = DrawPeriod(user);
  }

  // The user's present parameter: one of parameters_ or, with drift, a point between two.
  std::span<const double> parameter_of(std::size_t user) const {
    if (!options_.drift) return parameters_[users_[user].model];
    return std::span(positions_).subspan(user * options_.dim, options_.dim);
  }

  // Draws the next parameter of a drifting user.
  void SetOut(std::size_t user) {
    users_[user].from = users_[user].model;
    users_[user].to = DrawNextModel(user);
    ++assignments_[users_[user].to];
  }

  void Drift(std::size_t u) {
    User& user = users_[u];
    if (period_is_over(user)) {
      StartPeriod(u);
      SetOut(u);
    }
    const double share =
        static_cast<double>(round_ - user.last_change) / static_cast<double>(user.period + 1);
    user.model = share < 0.5 ? user.from : user.to;
    Interpolate(parameters_[user.from], parameters_[user.to], share,
                std::span(positions_).subspan(u * options_.dim, options_.dim));
  }

  double least_distance() const {
    if (options_.separation) return kLeastShareOfSeparation * *options_.separation;
    return options_.setting == Setting::kDirichletProcess ? kLeastDistanceDirichlet
                                                          : kLeastDistanceFixed;
  }

  // A uniform direction or, with a separation, one at the given angle to the common direction.
  void DrawParameter(RandomStream& random, std::span<double> out) const {
    random.FillNormal(out);
    Normalise(out);
    if (!options_.separation) return;
    linalg::Axpy(-linalg::Dot(out, common_direction_), common_direction_, out);
    Normalise(out);
    const double sine = *options_.separation / std::numbers::sqrt2;
    const double cosine = std::sqrt(1 - sine * sine);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = cosine * common_direction_[i] + sine * out[i];
    }
  }

  // One more parameter, far enough from the others; false if none is found.
  bool AddParameter(std::span<const std::vector<double>> others) {
    RandomStream random = Stream(Purpose::kParameter, parameters_.size());
    std::vector<double> candidate(options_.dim);
    for (int attempt = 0; attempt < kPlacementAttempts; ++attempt) {
      DrawParameter(random, candidate);
      const bool apart = std::ranges::all_of(others, [&](const auto& other) {
        return Distance(candidate, other) >= least_distance();
      });
      if (apart) {
        parameters_.push_back(candidate);
        return true;
      }
    }
    return false;
  }

  std::size_t DrawPeriod(std::size_t user) const {
    return options_.period_min + Stream(Purpose::kPeriod, VisitNumber(user))
                                     .Below(options_.period_max - options_.period_min + 1);
  }

  std::size_t DrawNextModel(std::size_t user) {
    RandomStream random = Stream(Purpose::kNextModel, VisitNumber(user));
    if (options_.setting == Setting::kFixedSet) {
      if (options_.models == 1) return 0;
      const std::size_t other = random.Below(options_.models - 1);
      return other < users_[user].model ? other : other + 1;
    }
    std::span<const std::vector<double>> others = parameters_;
    if (options_.setting == Setting::kNovel) {
      // Far from all others is not asked for: the sphere would fill up.
      others = others.subspan(users_[user].model, 1);
    } else {
      std::vector<double> weights(assignments_.begin(), assignments_.end());
      weights.push_back(kConcentration);
      const std::size_t drawn = random.Categorical(weights);
      if (drawn < parameters_.size()) return drawn;
    }
    if (!AddParameter(others)) return users_[user].model;  // the sphere is full: the user stays
    assignments_.push_back(0);
    return parameters_.size() - 1;
  }

  SyntheticOptions options_;
  RewardModel rewards_;
  std::uint64_t seed_;
  std::size_t round_ = 0;
  ArmPool arm_pool_;
  std::vector<double> visits_up_to_;      // by user, relative: of Zipf's visitors
  std::vector<double> common_direction_;  // with a separation
  std::vector<std::vector<double>> parameters_;
  std::vector<std::uint64_t> assignments_;  // how often each parameter was given to a user
  std::vector<User> users_;
  std::vector<double> positions_;            // of drifting users, row-major
  std::vector<double> own_tastes_;           // of individual users, row-major
  mutable std::vector<std::size_t> chosen_;  // scratch of MakeVisit
};

}  // namespace

Result<std::unique_ptr<Environment>> MakeSynthetic(const SyntheticOptions& options,
                                                   std::uint64_t seed) {
  CODBAND_RETURN_IF_ERROR(options.Validate());
  auto environment = std::make_unique<Synthetic>(options, seed);
  CODBAND_RETURN_IF_ERROR(environment->Start());
  return std::unique_ptr<Environment>(std::move(environment));
}

}  // namespace codband::sim
