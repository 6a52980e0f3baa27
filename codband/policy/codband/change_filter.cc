#include "codband/policy/codband/change_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"

namespace codband {

namespace {

// Whether a model may have a given weight, by a bound on its density that needs no variance: with
// residual e a Gaussian whose variance is between σ² and v has at most the density
// exp(-e²/2v) / √(2πσ²).
class ReachTest {
 public:
  // `least`: ln of the weight that is to be reached.
  ReachTest(const linalg::GaussianPosterior& prior, const RewardNoise& noise,
            std::span<const double> x, double least)
      : x_(x), clicks_(noise.clicks()), noise_variance_(prior.noise_variance()), least_(least) {
    if (clicks_) return;
    least_ += 0.5 * std::log(2 * std::numbers::pi * noise_variance_);
    for (std::size_t j = 0; j < x.size(); ++j) {
      prior_variance_ += x[j] * x[j] / prior.prior_precision()[j];
    }
  }

  // `chance`: of the model, before the reward.
  bool operator()(const PoolModel& model, double chance, double r, const ItemOffset& item) const {
    if (!(chance > 0)) return false;
    const double reserve = std::log(chance) - least_;
    if (reserve < 0) return false;
    if (clicks_) return true;
    const double residual =
        r + item.taken - item.On(model.id) - linalg::Dot(x_, model.posterior.mean());
    const double most = noise_variance_ + model.posterior.variance_share() * prior_variance_;
    return !(residual * residual > 2 * most * reserve);
  }

 private:
  std::span<const double> x_;
  bool clicks_;
  double noise_variance_;
  double least_;  // less ln of the largest density
  double prior_variance_ = 0;
};

}  // namespace

double LogPredictive(const linalg::GaussianPosterior& model, const RewardNoise& noise,
                     std::span<const double> x, double r, double offset) {
  const double mean = linalg::Dot(x, model.mean());
  const double variance = noise.clicks() ? 1 : model.noise_variance() + model.Variance(x);
  return noise.LogDensity(r, mean, variance, offset);
}

double LogPredictive(const PoolModel& model, const RewardNoise& noise, std::span<const double> x,
                     double r, const ItemOffset& item) {
  const double part = item.On(model.id);
  return LogPredictive(model.posterior, noise, x, r + item.taken - part, part);
}

ChangeFilter::ChangeFilter(std::size_t dim, std::size_t window) : dim_(dim), capacity_(window + 1) {
  features_.resize(capacity_ * dim);
  roots_.resize(dim);
  factor_.resize(capacity_ * capacity_);
  solved_.resize(capacity_);
  fresh_.reserve(capacity_);
}

// With rows newest first, the leading j × j block of the Gram matrix belongs to the newest j, so
// that a row of the factor gives the density of one more observation given the newer ones.
void ChangeFilter::ScoreFresh(const linalg::GaussianPosterior& prior, const RewardNoise& noise,
                              const ChangeWindow& window, std::span<const double> x, double r,
                              double offset) {
  for (std::size_t f = 0; f < dim_; ++f) roots_[f] = std::sqrt(prior.prior_precision()[f]);
  double sum = 0;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    const std::span<double> row = std::span(features_).subspan(i * dim_, dim_);
    if (i == 0) {
      std::ranges::copy(x, row.begin());
    } else {
      window.ReadFeatures(i - 1, row);
    }
    const double reward = i == 0 ? r : window.reward(i - 1);
    const double residual = reward - linalg::Dot(row, prior.mean());
    // Scaled by the prior's deviations once, so that Gram entries are plain products.
    for (std::size_t f = 0; f < dim_; ++f) row[f] /= roots_[f];
    double* const lower = factor_.data() + i * capacity_;
    double variance = linalg::Dot(row, row) + prior.noise_variance();
    double expected = 0;  // of the residual, given the newer ones
    linalg::MultiplyRows(std::span(features_).first(i * dim_), row, {lower, i});
    for (std::size_t j = 0; j < i; ++j) {
      const double* const other = factor_.data() + j * capacity_;
      double value = lower[j];
      for (std::size_t k = 0; k < j; ++k) value -= lower[k] * other[k];
      lower[j] = value / other[j];
      variance -= lower[j] * lower[j];
      expected += lower[j] * solved_[j];
    }
    variance = std::max(variance, prior.noise_variance());  // at least the noise, but for rounding
    lower[i] = std::sqrt(variance);
    solved_[i] = (residual - expected) / lower[i];
    sum += noise.LogDensity(reward, reward - (residual - expected), variance,
                            i == 0 ? offset : window.offset(i - 1));
    fresh_[i] = sum;
  }
}

void ChangeFilter::ScoreModels(const ModelPool& pool, const RewardNoise& noise,
                               const Belief& belief, std::span<const double> x, double r,
                               const ItemOffset& item) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const std::span<double> weights = std::span(log_weights_).first(pool.size());
  std::ranges::fill(weights, kNone);
  const auto score = [&](std::size_t k) {
    return chances_[k] > 0 ? std::log(chances_[k]) + LogPredictive(pool.model(k), noise, x, r, item)
                           : kNone;
  };
  double likeliest = kNone;
  listed_.clear();
  for (std::size_t i = 0; i < belief.size(); ++i) {
    const auto k = pool.IndexOf(belief.model(i));
    if (!k) continue;
    listed_.push_back(*k);
    weights[*k] = score(*k);
    likeliest = std::max(likeliest, weights[*k]);
  }
  std::ranges::sort(listed_);
  const double least = likeliest + std::log(kNegligible);
  const ReachTest may_reach(pool.prior(), noise, x, least);
  auto next_listed = listed_.begin();
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (next_listed != listed_.end() && *next_listed == k) {
      ++next_listed;
    } else if (may_reach(pool.model(k), chances_[k], r, item)) {
      const double weight = score(k);
      if (weight >= least) weights[k] = weight;
    }
  }
}

double ChangeFilter::Update(const ModelPool& pool, const RewardNoise& noise, double hazard,
                            std::span<const double> prior_weights, const ChangeWindow& window,
                            std::span<const double> x, double r, Belief& belief, LearnMemo* memo,
                            const ItemOffset& item) {
  const std::size_t models = pool.size();
  CODBAND_DCHECK(prior_weights.size() == models + 1);
  chances_.resize(models + 1);
  log_weights_.resize(models + 1);
  fresh_.resize(std::min(capacity_, window.size() + 1));
  belief.Expand(pool, prior_weights, chances_);
  stayed_.resize(models);
  double moves = prior_weights[models];  // the chance to be elsewhere after a change
  for (std::size_t k = 0; k < models; ++k) {
    const double stays = (1 - hazard) * chances_[k];
    const double comes = prior_weights[k] * (1 - chances_[k]);
    moves += comes;
    chances_[k] = stays + hazard * comes;
    stayed_[k] = chances_[k] > 0 ? stays / chances_[k] : 0;
  }
  LearnMemo::Fill(memo, std::span(log_weights_).first(models),
                  [&] { ScoreModels(pool, noise, belief, x, r, item); });
  LearnMemo::Fill(memo, fresh_, [&] { ScoreFresh(pool.prior(), noise, window, x, r, item.taken); });
  const double log_start = std::log(hazard * prior_weights[models]);
  // The evidence before a start, relative to that before the newest observation.
  double before_start = 0;
  double fresh = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < fresh_.size(); ++j) {
    if (j > 0) before_start -= window.log_predictive(j - 1);
    const double start_here = log_start + before_start + fresh_[j];
    const double larger = std::max(fresh, start_here);
    const double smaller = std::min(fresh, start_here);
    fresh = larger + (std::isinf(smaller) ? 0 : std::log1p(std::exp(smaller - larger)));
  }
  log_weights_[models] = fresh;

  const double largest = *std::ranges::max_element(log_weights_);
  double sum = 0;
  for (std::size_t k = 0; k <= models; ++k) {
    chances_[k] = std::exp(log_weights_[k] - largest);
    sum += chances_[k];
  }
  for (double& chance : chances_) chance /= sum;
  double changed = std::exp(log_start + fresh_[0] - largest) / sum;
  for (std::size_t k = 0; k < models; ++k) changed += chances_[k] * (1 - stayed_[k]);
  change_ratio_ = changed / (1 - changed) * (1 - hazard) / (hazard * moves);
  belief.Assign(pool, chances_);
  return largest + std::log(sum);
}

}  // namespace codband
