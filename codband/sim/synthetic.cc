#include "codband/sim/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/random.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"

namespace codband {
namespace {

// What the environment draws random numbers for; far from the purposes of policies, which may use
// the same seed.
enum class Purpose : std::uint64_t {
  kArmPool = 1000,
  kParameter = 1001,  // event: how many there are already
  kFirstModel = 1002,
  kPeriod = 1003,  // event: visit number
  kNextModel = 1004,
  kVisit = 1005,
};

// The concentration of setting 1, and the least distance between parameters.
constexpr double kConcentration = 4;
constexpr double kLeastDistanceDirichlet = 0.9;
constexpr double kLeastDistanceFixed = 0.85;
constexpr int kPlacementAttempts = 10000;

// What fits: the arms of one visit, and the numbers of one round or of the pool (8 GB).
constexpr std::size_t kMostArms = 10'000;
constexpr std::size_t kMostNumbers = 1'000'000'000;

void Normalise(std::span<double> v) {
  const double norm = std::sqrt(Dot(v, v));
  for (double& value : v) value /= norm;
}

double Distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

class Synthetic final : public Environment {
 public:
  Synthetic(const SyntheticOptions& options, std::uint64_t seed) : options_(options), seed_(seed) {
    MakeArmPool();
  }

  // Draws the first parameters and gives each user one of them.
  Status Start() {
    for (std::size_t k = 0; k < options_.models; ++k) {
      if (!AddParameter()) {
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
    return {};
  }

  std::size_t dim() const override { return options_.dim; }
  std::size_t user_count() const override { return options_.users; }
  std::size_t round_count() const override { return options_.rounds; }

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
    for (std::size_t u = 0; u < users_.size(); ++u) {
      User& user = users_[u];
      user.changed = false;
      if (options_.setting == Setting::kStationary) continue;
      if (round <= user.last_change + user.period) continue;
      const std::size_t model = DrawNextModel(u);
      user.changed = model != user.model;
      user.model = model;
      user.last_change = round;
      user.period = DrawPeriod(u);
      ++assignments_[model];
    }
  }

  void MakeVisit(UserId user, Visit& visit) const override {
    RandomStream random = Stream(Purpose::kVisit, VisitNumber(user));
    visit.user = user;
    visit.noise = options_.noise * random.Normal();
    visit.arms.resize(options_.arms * options_.dim);
    visit.means.resize(options_.arms);
    std::vector<std::size_t>& chosen = chosen_;
    chosen.clear();
    while (chosen.size() < options_.arms) {
      const std::size_t arm = random.Below(options_.pool);
      if (std::ranges::find(chosen, arm) == chosen.end()) chosen.push_back(arm);
    }
    for (std::size_t i = 0; i < options_.arms; ++i) {
      const std::span<const double> features =
          std::span(arm_pool_).subspan(chosen[i] * options_.dim, options_.dim);
      std::ranges::copy(features,
                        visit.arms.begin() + static_cast<std::ptrdiff_t>(i * options_.dim));
      visit.means[i] = Dot(features, parameters_[users_[user].model]);
    }
  }

 private:
  struct User {
    std::size_t model = 0;
    std::size_t last_change = 0;
    std::size_t period = 0;
    bool changed = false;
  };

  RandomStream Stream(Purpose purpose, std::uint64_t event) const {
    return {{.seed = seed_, .event = event}, static_cast<std::uint64_t>(purpose)};
  }

  std::uint64_t VisitNumber(std::size_t user) const { return round_ * options_.users + user; }

  double least_distance() const {
    return options_.setting == Setting::kDirichletProcess ? kLeastDistanceDirichlet
                                                          : kLeastDistanceFixed;
  }

  void MakeArmPool() {
    const std::size_t d = options_.dim;
    RandomStream random = Stream(Purpose::kArmPool, 0);
    arm_pool_.resize(options_.pool * d);
    for (std::size_t a = 0; a < options_.pool; ++a) {
      const std::span<double> arm = std::span(arm_pool_).subspan(a * d, d);
      for (std::size_t i = 0; i < d; ++i) {
        arm[i] = std::sqrt(static_cast<double>(d - i) / static_cast<double>(d)) * random.Normal();
      }
      Normalise(arm);
    }
  }

  // A uniform direction, far enough from all others; false if none is found.
  bool AddParameter() {
    RandomStream random = Stream(Purpose::kParameter, parameters_.size());
    std::vector<double> candidate(options_.dim);
    for (int attempt = 0; attempt < kPlacementAttempts; ++attempt) {
      random.FillNormal(candidate);
      Normalise(candidate);
      const bool apart = std::ranges::all_of(parameters_, [&](const auto& other) {
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
    std::vector<double> weights(assignments_.begin(), assignments_.end());
    weights.push_back(kConcentration);
    const std::size_t drawn = random.Categorical(weights);
    if (drawn < parameters_.size()) return drawn;
    if (!AddParameter()) return users_[user].model;  // the sphere is full: the user stays
    assignments_.push_back(0);
    return drawn;
  }

  SyntheticOptions options_;
  std::uint64_t seed_;
  std::size_t round_ = 0;
  std::vector<double> arm_pool_;  // row-major
  std::vector<std::vector<double>> parameters_;
  std::vector<std::uint64_t> assignments_;  // how often each parameter was given to a user
  std::vector<User> users_;
  mutable std::vector<std::size_t> chosen_;  // scratch of MakeVisit
};

}  // namespace

SyntheticOptions SyntheticOptions::Paper(Setting setting) {
  SyntheticOptions options{.setting = setting};
  if (setting == Setting::kStationary) {
    options.users = 500;
    options.rounds = 600;
    options.models = 2;
  }
  return options;
}

Status SyntheticOptions::Validate() const {
  const auto in_range = [](std::string_view field, std::size_t value, std::size_t min,
                           std::size_t max) -> Status {
    if (value >= min && value <= max) return {};
    return Status::InvalidArgument(
        fmt::format("{} = {}, expected a whole number from {} to {}", field, value, min, max));
  };
  CODBAND_RETURN_IF_ERROR(in_range("users", users, 1, 10'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("models", models, 1, 100'000));
  CODBAND_RETURN_IF_ERROR(in_range("rounds", rounds, 1, 1'000'000'000));
  CODBAND_RETURN_IF_ERROR(in_range("dim", dim, 1, kMaxDimension));
  CODBAND_RETURN_IF_ERROR(in_range("pool", pool, 1, 10'000'000));
  if (arms < 1 || arms > pool || arms > kMostArms) {
    return Status::InvalidArgument(fmt::format("arms = {}, expected a whole number from 1 to {}{}",
                                               arms, std::min(pool, kMostArms),
                                               pool < kMostArms ? " (the pool of arms)" : ""));
  }
  if (users * arms * dim > kMostNumbers || pool * dim > kMostNumbers) {
    return Status::InvalidArgument(
        fmt::format("users × arms × dim = {} and pool × dim = {}, expected at most {} numbers each",
                    users * arms * dim, pool * dim, kMostNumbers));
  }
  if (period_min < 1 || period_min > period_max) {
    return Status::InvalidArgument(
        fmt::format("period = {}:{}, expected MIN:MAX with 1 ≤ MIN ≤ MAX", period_min, period_max));
  }
  CODBAND_RETURN_IF_ERROR(in_range("period MAX", period_max, 1, 1'000'000'000));
  if (!(noise >= 1e-6 && noise <= 1e6)) {
    return Status::InvalidArgument(
        fmt::format("noise = {}, expected a number from 1e-06 to 1e+06", noise));
  }
  return {};
}

Result<std::unique_ptr<Environment>> MakeSynthetic(const SyntheticOptions& options,
                                                   std::uint64_t seed) {
  CODBAND_RETURN_IF_ERROR(options.Validate());
  auto environment = std::make_unique<Synthetic>(options, seed);
  CODBAND_RETURN_IF_ERROR(environment->Start());
  return std::unique_ptr<Environment>(std::move(environment));
}

}  // namespace codband
