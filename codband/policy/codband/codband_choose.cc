#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/codband/exploration.h"
#include "codband/policy/scoring.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// How much closer users of one model are than models, as a ratio of variances, before it is known.
constexpr double kCloser = 10;

}  // namespace

CoDBand::Outlook CoDBand::LookAt(UserId user, ArmsView arms) const {
  thread_local std::vector<double> prior_chances;
  thread_local std::vector<double> chances;
  std::optional<UserRecord> scratch;
  const UserRecord* record = users_.Peek(user, scratch);
  // A record from the archive may be newer than the models.
  const bool has_period =
      record != nullptr && record->has_period() && pool_.IndexOf(record->current.model).has_value();
  Outlook outlook;
  if (record != nullptr) outlook.period = record->past.closed_count();
  outlook.settled = has_period && !bayes();
  if (outlook.settled) {
    chances.assign(pool_.size() + 1, 0.0);
    chances[pool_.IndexOf(record->current.model).value()] = 1;
  } else {
    PriorChances(user, record, prior_chances);
    chances.resize(pool_.size() + 1);
    if (has_period) {
      record->belief.Expand(pool_, prior_chances, chances);
    } else {
      chances = prior_chances;
    }
  }
  outlook.chances = chances;
  if (has_period && departs()) {
    outlook.own = pool_.IndexOf(record->current.model).value();
    outlook.departure = DepartureFrom(outlook.own, *record);
  }
  outlook.likeliest = static_cast<std::size_t>(std::ranges::max_element(chances) - chances.begin());
  if (options_.explore == ExploreKind::kAdaptive) {
    outlook.draw_chance = ExplorationNeed(Posterior(outlook.likeliest), arms, options_.intercept);
  }
  return outlook;
}

std::span<const double> CoDBand::DepartureFrom(std::size_t k, const UserRecord& user) const {
  const double variance =
      departure_evidence_.Variance(prior_.noise_variance, 1 / (kCloser * prior_.precision.front()));
  if (variance == 0) return {};
  thread_local std::optional<DepartureSolver> solver;
  thread_local std::vector<double> departure;
  if (!solver || departure.size() != dim() || solver->dim() != inner_dim()) {
    solver.emplace(inner_dim(), dim());
    departure.resize(dim());
  }
  solver->Solve(Posterior(k), user.current.data, variance, departure);
  return departure;
}

void CoDBand::ParameterOn(const Outlook& outlook, std::size_t k, std::span<double> mean) const {
  std::ranges::copy(Posterior(k).mean(), mean.begin());
  if (k == outlook.own) linalg::Axpy(1, outlook.departure, mean.first(outlook.departure.size()));
}

void CoDBand::MeanParameter(const Outlook& outlook, std::span<double> mean) const {
  std::ranges::fill(mean, 0.0);
  for (std::size_t k = 0; k < outlook.chances.size(); ++k) {
    if (outlook.chances[k] > 0) linalg::Axpy(outlook.chances[k], Posterior(k).mean(), mean);
  }
  const std::size_t departing = outlook.departure.size();
  if (departing > 0)
    linalg::Axpy(outlook.chances[outlook.own], outlook.departure, mean.first(departing));
}

// θ is the mean over all that the user may be on, or where the arms call for exploration a draw:
// first of the model, then of its parameter.
Propensity CoDBand::DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const {
  const Outlook outlook = LookAt(user, arms);
  const bool draw = outlook.draw_chance == 1 ||
                    (outlook.draw_chance > 0 &&
                     StreamFor(key, DrawPurpose::kExplore).Uniform() < outlook.draw_chance);

  std::size_t model = outlook.likeliest;
  std::array<double, linalg::kMaxDimension> mean_buffer;
  std::array<double, linalg::kMaxDimension> theta_buffer;
  const std::span<double> mean(mean_buffer.data(), inner_dim());
  std::span<double> theta = mean;
  if (draw) {
    if (!outlook.settled) {
      RandomStream random = StreamFor(key, DrawPurpose::kFirstModel);
      model = DrawModel(outlook.chances, random);
    }
    ParameterOn(outlook, model, mean);
    theta = {theta_buffer.data(), inner_dim()};
    RandomStream random = StreamFor(key, DrawPurpose::kParameter);
    Posterior(model).Sample(random, options_.v, theta);
    if (model == outlook.own)
      linalg::Axpy(1, outlook.departure, theta.first(outlook.departure.size()));
  } else {
    MeanParameter(outlook, mean);
  }

  const auto intercept = [&](std::span<const double> parameter) {
    return options_.intercept ? parameter[dim()] : 0;
  };
  decision.period = outlook.period;
  decision.model = IdOf(model);
  decision.arm = BestArm(theta.first(dim()), arms);
  const std::span<const double> x = arms.arm(decision.arm);
  decision.score = linalg::Dot(x, theta.first(dim())) + intercept(theta);
  decision.mean = linalg::Dot(x, mean.first(dim())) + intercept(mean);
  decision.width = std::sqrt(Posterior(model).Variance(Extend(x)));
  return outlook.draw_chance > 0 ? Propensity::Sampled() : Propensity::Certain();
}

}  // namespace codband
