#include "codband/eval/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "codband/base/check.h"
#include "codband/base/parallel.h"
#include "codband/base/random.h"
#include "codband/linalg/kernels.h"

namespace codband::eval {
namespace {

constexpr std::uint64_t kBootstrapPurpose = 3001;
constexpr double kLargestStake = 0.99;
constexpr int kBisections = 45;

struct Bet {
  double stake = 0;       // λ
  double log_weight = 0;  // ln g
};

// Stakes from 0.99 down by halves. The optimal stake is about sqrt(2 ln(1/alpha) / Σ (z − m)²), a
// few times 1/√n for z of size 1; stakes near it get the larger weights.
std::vector<Bet> Bets(std::size_t n) {
  const double usual = 2.7 / std::sqrt(static_cast<double>(n));
  std::vector<Bet> bets;
  double sum = 0;
  for (double stake = kLargestStake; bets.size() < 2 || stake > usual / 2000; stake /= 2) {
    const double away = std::abs(std::log2(stake / std::min(usual, kLargestStake)));
    const double weight = 1 / ((2 + away) * (2 + away));
    bets.push_back({stake, weight});
    sum += weight;
  }
  for (Bet& bet : bets) bet.log_weight = std::log(bet.log_weight / sum);
  return bets;
}

// ln Σ_k g_k Π_i (1 + λ_k (z_i − m)) over `zeros` zeros and the others.
double LogWealth(const std::vector<Bet>& bets, std::span<const double> others, double zeros,
                 double m) {
  double largest = -std::numeric_limits<double>::infinity();
  std::vector<double> logs;
  for (const Bet& bet : bets) {
    linalg::LogProduct product;
    const double base = 1 - bet.stake * m;
    for (const double z : others) product.Multiply(base + bet.stake * z);
    logs.push_back(bet.log_weight + zeros * std::log1p(-bet.stake * m) + product.Log());
    largest = std::max(largest, logs.back());
  }
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

// The bound for z = make(event).
template <typename MakeZ>
double Lower(const ScoredLog& log, double alpha, MakeZ make) {
  std::vector<double> z;
  z.reserve(log.events.size());
  // Rounding may leave it slightly below 0.
  for (const ScoredEvent& event : log.events) z.push_back(std::max(0.0, make(event)));
  return LowerConfidenceBound(z, alpha);
}

// The mean probability that the target puts on actions the log cannot choose, as far as it is
// known: their rewards are never observed, and may be 1.
double Unseen(const ScoredLog& log) {
  double sum = 0;
  for (const ScoredEvent& event : log.events) {
    if (!std::isnan(event.unsupported)) sum += event.unsupported;
  }
  return sum / static_cast<double>(log.events.size());
}

Interval MeanInterval(const ScoredLog& log, RewardRange range, double alpha) {
  return {Lower(log, alpha, [&](const ScoredEvent& e) { return range.Scale(e.reward); }),
          1 - Lower(log, alpha, [&](const ScoredEvent& e) { return 1 - range.Scale(e.reward); })};
}

Interval IpsInterval(const ScoredLog& log, RewardRange range, double alpha) {
  const auto low =
      Lower(log, alpha, [&](const ScoredEvent& e) { return e.weight * range.Scale(e.reward); });
  const double mirrored = 1 - Lower(log, alpha / 2, [&](const ScoredEvent& e) {
                            return e.weight * (1 - range.Scale(e.reward));
                          });
  const double bound = std::max(1.0, log.weight_bound);
  const double bounded = bound * (1 - Lower(log, alpha / 2, [&](const ScoredEvent& e) {
                                    return 1 - e.weight * range.Scale(e.reward) / bound;
                                  }));
  return {low, std::min({1.0, mirrored, bounded + Unseen(log)})};
}

Interval RobustInterval(const ScoredLog& log, RewardRange range, double alpha) {
  const auto halved = [&](double ScoredEvent::*term, double chance) {
    const double low = Lower(log, chance, [&](const ScoredEvent& e) { return (e.*term + 1) / 2; });
    return std::max(0.0, 2 * low - 1);
  };
  const double low = halved(&ScoredEvent::robust_low, alpha);
  const double mirrored = 1 - halved(&ScoredEvent::robust_high, alpha / 2);
  const double scale = std::max(1.0, log.weight_bound) + 1;
  const double bounded =
      scale * (1 - Lower(log, alpha / 2, [&](const ScoredEvent& e) {
                 const double term = e.weight * (range.Scale(e.reward) - range.Scale(e.predicted)) +
                                     range.Scale(e.value);
                 return 1 - term / scale;
               }));
  return {low, std::min({1.0, mirrored, bounded + Unseen(log)})};
}

// Rank-based percentile without interpolation. `values` are sorted and not empty.
double Percentile(const std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size());
  const auto index = static_cast<std::size_t>(std::max(0.0, std::ceil(place) - 1));
  return values[std::min(index, values.size() - 1)];
}

std::optional<BootstrapResult> Summarise(std::vector<double> values, double confidence) {
  const std::size_t all = values.size();
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.size() < 2 || 2 * values.size() < all) return std::nullopt;
  std::ranges::sort(values);
  if (values.front() == values.back()) return std::nullopt;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double tail = (1 - confidence) / 2;
  return BootstrapResult{
      .interval = {Percentile(values, tail), Percentile(values, 1 - tail)},
      .standard_error = std::sqrt(squares / static_cast<double>(values.size() - 1))};
}

}  // namespace

double LowerConfidenceBound(std::span<const double> z, double alpha) {
  CODBAND_CHECK(alpha > 0 && alpha < 1);
  std::vector<double> others;
  double sum = 0;
  for (const double value : z) {
    CODBAND_CHECK(value >= 0);
    if (value > 0) others.push_back(value);
    sum += value;
  }
  if (others.empty()) return 0;
  const auto n = static_cast<double>(z.size());
  const auto zeros = static_cast<double>(z.size() - others.size());
  const std::vector<Bet> bets = Bets(z.size());
  const double limit = std::log(1 / alpha);
  // The wealth falls with m; at the mean of z it is at most 1.
  double low = 0;
  double high = std::min(1.0, sum / n);
  if (LogWealth(bets, others, zeros, low) < limit) return 0;
  if (LogWealth(bets, others, zeros, high) >= limit) return high;
  for (int i = 0; i < kBisections && high - low > 1e-9 * high; ++i) {
    const double middle = (low + high) / 2;
    (LogWealth(bets, others, zeros, middle) < limit ? high : low) = middle;
  }
  return low;
}

std::optional<Interval> GuaranteedInterval(Estimator estimator, const ScoredLog& log,
                                           RewardRange range, double confidence) {
  const double alpha = (1 - confidence) / 2;
  Interval shares;
  switch (estimator) {
    case Estimator::kMean:
      shares = MeanInterval(log, range, alpha);
      break;
    case Estimator::kIps:
      shares = IpsInterval(log, range, alpha);
      break;
    case Estimator::kDr:
      shares = RobustInterval(log, range, alpha);
      break;
    default:
      return std::nullopt;
  }
  return Interval{range.Unscale(shares.low), range.Unscale(shares.high)};
}

std::vector<std::optional<BootstrapResult>> Bootstrap(std::span<const Estimator> estimators,
                                                      std::span<const ScoredEvent> events,
                                                      const BootstrapOptions& options) {
  CODBAND_CHECK(!events.empty());
  const std::size_t units = std::min(events.size(), kMostUnits);
  const std::size_t width = estimators.size();
  std::vector<Term> terms(units * width);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::size_t unit = i * units / events.size();
    for (std::size_t e = 0; e < width; ++e) {
      const Term term = TermOf(estimators[e], events[i]);
      terms[unit * width + e].numerator += term.numerator;
      terms[unit * width + e].denominator += term.denominator;
    }
  }
  std::vector<std::vector<double>> values(width, std::vector<double>(options.resamples));
  ParallelFor(options.resamples, options.threads, [&](std::size_t b) {
    RandomStream random({.seed = options.seed, .event = b}, kBootstrapPurpose);
    std::vector<Term> sums(width);
    for (std::size_t draw = 0; draw < units; ++draw) {
      const std::size_t row = random.Below(units) * width;
      for (std::size_t e = 0; e < width; ++e) {
        sums[e].numerator += terms[row + e].numerator;
        sums[e].denominator += terms[row + e].denominator;
      }
    }
    for (std::size_t e = 0; e < width; ++e) {
      values[e][b] = sums[e].denominator == 0 ? std::numeric_limits<double>::quiet_NaN()
                                              : sums[e].numerator / sums[e].denominator;
    }
  });
  std::vector<std::optional<BootstrapResult>> results;
  for (std::vector<double>& value : values) {
    results.push_back(Summarise(std::move(value), options.confidence));
  }
  return results;
}

}  // namespace codband::eval
