#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// Points come in pairs, z and -z, so that the mean is integrated exactly.
constexpr std::size_t kPairs = 64;
constexpr std::size_t kFewestPairs = 8;
// Beyond this many products of a feature and a point there are fewer points.
constexpr std::size_t kMostProducts = 1 << 22;

std::size_t PairsFor(std::size_t numbers) {
  std::size_t pairs = kPairs;
  while (pairs > kFewestPairs && numbers * pairs > kMostProducts) pairs /= 2;
  return pairs;
}

}  // namespace

std::vector<double> IntegrationPoints(std::size_t dim) {
  std::vector<double> points(kPairs * dim);
  RandomStream random({.seed = 0, .event = 0}, 0);
  random.FillNormal(points);
  return points;
}

// For each point the arm that wins there. Point 2p is the centre plus δ_p, point 2p + 1 minus.
// Returns the number of points.
std::size_t CoDBand::FindWinners(const Outlook& outlook, ArmsView arms, ThompsonPoints& out) const {
  const std::span<const double> chances = outlook.chances;
  const std::size_t d = inner_dim();
  const std::size_t pairs = PairsFor(arms.features.size());
  // The models share the points in proportion to their chances.
  double passed = 0;
  std::size_t model = 0;
  out.deltas.resize(d * pairs);  // feature by feature
  std::array<double, kMaxDimension> buffer;
  const std::span<double> delta(buffer.data(), d);
  for (std::size_t p = 0; p < pairs; ++p) {
    const double position = (static_cast<double>(p) + 0.5) / static_cast<double>(pairs);
    while (model + 1 < chances.size() && passed + chances[model] < position) {
      passed += chances[model++];
    }
    out.models[p] = model;
    std::ranges::copy(std::span(points_).subspan(p * d, d), delta.begin());
    Posterior(model).factor().SolveTransposed(delta);
    for (std::size_t j = 0; j < d; ++j) out.deltas[j * pairs + p] = options_.v * delta[j];
  }

  const std::span<double> mean(buffer.data(), d);
  std::array<double, 2 * kPairs> best;
  best.fill(-std::numeric_limits<double>::infinity());
  out.winners.fill(0);
  for (std::size_t i = 0; i < arms.count(); ++i) {
    const std::span<const double> x = arms.arm(i);
    std::array<double, kPairs> spread{};
    if (options_.intercept) {
      std::ranges::copy(std::span(out.deltas).subspan(dim() * pairs, pairs), spread.begin());
    }
    for (std::size_t j = 0; j < dim(); ++j) {
      Axpy(x[j], std::span(out.deltas).subspan(j * pairs, pairs), {spread.data(), pairs});
    }
    double centre = 0;
    for (std::size_t p = 0; p < pairs; ++p) {
      if (p == 0 || out.models[p] != out.models[p - 1]) {
        ParameterOn(outlook, out.models[p], mean);
        centre = Dot(x, mean.first(dim())) + (options_.intercept ? mean[dim()] : 0);
      }
      const std::array<double, 2> scores = {centre + spread[p], centre - spread[p]};
      for (std::size_t side = 0; side < 2; ++side) {
        if (scores[side] > best[2 * p + side]) {
          best[2 * p + side] = scores[side];
          out.winners[2 * p + side] = static_cast<std::uint32_t>(i);
        }
      }
    }
  }
  return 2 * pairs;
}

// As DoChoose, but the draw of θ is one of a fixed set of points instead of a new one each time.
// How many of them an arm wins is then its chance under Thompson sampling.
void CoDBand::DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const {
  const Outlook outlook = LookAt(user, arms);
  const std::size_t d = inner_dim();
  ranking.theta.resize(d);
  MeanParameter(outlook, ranking.theta);
  if (options_.intercept) {
    ranking.intercept = ranking.theta.back();
    ranking.theta.pop_back();
  }
  thread_local std::vector<double> rows;
  constexpr std::size_t kChunk = 64;
  std::array<double, kChunk> variances;
  rows.resize(kChunk * d);
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < arms.count(); first += kChunk) {
    const std::size_t count = std::min(kChunk, arms.count() - first);
    for (std::size_t i = 0; i < count; ++i) {
      std::ranges::copy(std::span<const double>(Extend(arms.arm(first + i))),
                        rows.begin() + static_cast<std::ptrdiff_t>(i * d));
    }
    Posterior(outlook.likeliest)
        .Variances(std::span(rows).first(count * d), {variances.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      Ranking::Arm& arm = ranking.arms[first + i];
      arm.mean = arm.score = Dot(arms.arm(first + i), ranking.theta) + ranking.intercept;
      arm.width = std::sqrt(variances[i]);
      best = std::max(best, arm.mean);
    }
  }

  Decision& decision = ranking.decision;
  decision.period = outlook.period;
  decision.model = IdOf(outlook.likeliest);
  const auto is_best = [&](const Ranking::Arm& arm) { return arm.mean == best; };
  const auto equals = static_cast<std::size_t>(std::ranges::count_if(ranking.arms, is_best));
  CODBAND_CHECK(equals > 0);  // the means are numbers
  const double greedy = (1 - outlook.draw_chance) / static_cast<double>(equals);
  for (Ranking::Arm& arm : ranking.arms) arm.probability = is_best(arm) ? greedy : 0;

  RandomStream random = StreamFor(key, DrawPurpose::kStrategy);
  const bool draw = random.Uniform() < outlook.draw_chance;
  if (!draw) {
    std::size_t skip = equals > 1 ? random.Below(equals) : 0;
    std::size_t arm = 0;
    while (!is_best(ranking.arms[arm]) || skip-- > 0) ++arm;
    decision.arm = static_cast<std::uint32_t>(arm);
  }
  if (outlook.draw_chance == 0) return;

  thread_local ThompsonPoints points;
  const std::size_t count = FindWinners(outlook, arms, points);
  ranking.draws = count;
  for (std::size_t s = 0; s < count; ++s) {
    ranking.arms[points.winners[s]].probability += outlook.draw_chance / static_cast<double>(count);
  }
  if (!draw) return;
  const std::size_t taken = random.Below(count);
  const std::size_t pairs = count / 2;
  decision.arm = points.winners[taken];
  decision.model = IdOf(points.models[taken / 2]);
  std::array<double, kMaxDimension> buffer;
  const std::span<double> theta(buffer.data(), d);
  ParameterOn(outlook, points.models[taken / 2], theta);
  for (std::size_t j = 0; j < d; ++j) {
    const double delta = points.deltas[j * pairs + taken / 2];
    theta[j] += taken % 2 == 0 ? delta : -delta;
  }
  for (std::size_t i = 0; i < arms.count(); ++i) {
    ranking.arms[i].score =
        Dot(arms.arm(i), theta.first(dim())) + (options_.intercept ? theta[dim()] : 0);
  }
}

}  // namespace codband
