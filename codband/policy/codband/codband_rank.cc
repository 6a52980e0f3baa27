#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/vector_clones.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// Points come in pairs, z and -z, so that the mean is integrated exactly.
constexpr std::size_t kPairs = 64;
constexpr std::size_t kBlock = 4 * linalg::kLanes;  // pairs that are looked at together
constexpr std::size_t kFewestPairs = kBlock;
// Beyond this many products of a feature and a point there are fewer points.
constexpr std::size_t kMostProducts = 1 << 22;

std::size_t PairsFor(std::size_t numbers) {
  std::size_t pairs = kPairs;
  while (pairs > kFewestPairs && numbers * pairs > kMostProducts) pairs /= 2;
  return pairs;
}

// The best score at each point, and whose it is (a whole number, as a double so that it goes in a
// lane): with δ added first, subtracted second.
struct Winners {
  std::array<std::array<double, kPairs>, 2> score;
  std::array<std::array<double, kPairs>, 2> arm;
};

// Arms that are compared at the points.
struct Competitors {
  std::span<const double> rows;     // their features
  std::span<const double> centres;  // their scores by the mean
  std::size_t first = 0;            // the number of the first of them
};

// At the pairs from `begin` to `end` of all `pairs`.
CODBAND_VECTOR_CLONES void Compete(const Competitors& arms, std::span<const double> deltas,
                                   std::size_t pairs, std::size_t begin, std::size_t end,
                                   Winners& winners) {
  constexpr std::size_t kWide = kBlock / linalg::kLanes;
  const std::size_t d = deltas.size() / pairs;
  for (std::size_t block = begin / kBlock * kBlock; block < end; block += kBlock) {
    linalg::Lanes score[2][kWide];
    linalg::Lanes arm[2][kWide];
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t w = 0; w < kWide; ++w) {
        score[side][w] = linalg::AsLanes(winners.score[side].data() + block)[w];
        arm[side][w] = linalg::AsLanes(winners.arm[side].data() + block)[w];
      }
    }
    for (std::size_t i = 0; i < arms.centres.size(); ++i) {
      const double* const x = arms.rows.data() + i * d;
      linalg::Lanes spread[kWide] = {};
      for (std::size_t j = 0; j < d; ++j) {
        const linalg::Lanes* const delta = linalg::AsLanes(deltas.data() + j * pairs + block);
        for (std::size_t w = 0; w < kWide; ++w) spread[w] += x[j] * delta[w];
      }
      const linalg::Lanes number = static_cast<double>(arms.first + i) + linalg::Lanes{};
      for (std::size_t w = 0; w < kWide; ++w) {
        const linalg::Lanes scores[2] = {arms.centres[i] + spread[w], arms.centres[i] - spread[w]};
        for (std::size_t side = 0; side < 2; ++side) {
          const auto wins = scores[side] > score[side][w];
          score[side][w] = wins ? scores[side] : score[side][w];
          arm[side][w] = wins ? number : arm[side][w];
        }
      }
    }
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t p = std::max(block, begin); p < std::min(block + kBlock, end); ++p) {
        winners.score[side][p] = score[side][(p - block) / linalg::kLanes][p % linalg::kLanes];
        winners.arm[side][p] = arm[side][(p - block) / linalg::kLanes][p % linalg::kLanes];
      }
    }
  }
}

}  // namespace

// Feature by feature.
std::vector<double> IntegrationPoints(std::size_t dim) {
  std::vector<double> points(kPairs * dim);
  RandomStream random({.seed = 0, .event = 0}, 0);
  random.FillNormal(points);
  return points;
}

// The models share the points in proportion to their chances: δ = v L⁻ᵀ z by the model's factor.
void CoDBand::FindPoints(const Outlook& outlook, std::size_t pairs, ThompsonPoints& out) const {
  const std::size_t d = inner_dim();
  out.pairs = pairs;
  out.shares.clear();
  out.deltas.resize(d * pairs);
  double passed = 0;
  std::size_t begin = 0;
  for (std::size_t model = 0; begin < pairs; ++model) {
    passed += outlook.chances[model];
    std::size_t end = begin;
    const auto position = [&](std::size_t p) {
      return (static_cast<double>(p) + 0.5) / static_cast<double>(pairs);
    };
    const bool last = model + 1 == outlook.chances.size();
    while (end < pairs && (last || position(end) <= passed)) ++end;
    if (end == begin) continue;
    out.shares.push_back({model, begin, end});
    // Whole lanes; what is in them of other models is left where it is.
    thread_local std::vector<double> solved;
    const std::size_t from = begin / linalg::kLanes * linalg::kLanes;
    const std::size_t width = (end - from + linalg::kLanes - 1) / linalg::kLanes * linalg::kLanes;
    solved.resize(d * width);
    for (std::size_t j = 0; j < d; ++j) {
      std::ranges::copy(std::span(points_).subspan(j * kPairs + from, width),
                        solved.begin() + static_cast<std::ptrdiff_t>(j * width));
    }
    Posterior(model).factor().SolveTransposedColumns(solved);
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t p = begin; p < end; ++p) {
        out.deltas[j * pairs + p] = options_.v * solved[j * width + (p - from)];
      }
    }
    begin = end;
  }
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
  const auto score = [&](std::size_t arm, std::span<const double> theta) {
    return linalg::Dot(arms.arm(arm), theta.first(dim())) + (options_.intercept ? theta[dim()] : 0);
  };

  std::array<double, linalg::kMaxDimension> buffer;
  const std::span<double> parameter(buffer.data(), d);
  thread_local ThompsonPoints points;
  Winners winners;
  if (outlook.draw_chance > 0) {
    FindPoints(outlook, PairsFor(arms.features.size()), points);
    for (std::size_t side = 0; side < 2; ++side) {
      winners.score[side].fill(-std::numeric_limits<double>::infinity());
      winners.arm[side].fill(0);
    }
  }
  constexpr std::size_t kChunk = 64;  // arms that are looked at together
  thread_local std::vector<double> rows;
  std::array<double, kChunk> numbers;
  rows.resize(kChunk * d);
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < arms.count(); first += kChunk) {
    const std::size_t count = std::min(kChunk, arms.count() - first);
    const std::span<double> chunk = std::span(rows).first(count * d);
    for (std::size_t i = 0; i < count; ++i) {
      Extend(arms.arm(first + i), chunk.subspan(i * d, d));
    }
    Posterior(outlook.likeliest).Variances(chunk, {numbers.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      Ranking::Arm& arm = ranking.arms[first + i];
      arm.mean = arm.score = linalg::Dot(arms.arm(first + i), ranking.theta) + ranking.intercept;
      arm.width = std::sqrt(numbers[i]);
      best = std::max(best, arm.mean);
    }
    if (outlook.draw_chance == 0) continue;
    for (const auto& [model, begin, end] : points.shares) {
      ParameterOn(outlook, model, parameter);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = score(first + i, parameter);
      Compete({.rows = chunk, .centres = {numbers.data(), count}, .first = first}, points.deltas,
              points.pairs, begin, end, winners);
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

  const std::size_t count = 2 * points.pairs;
  ranking.draws = count;
  for (std::size_t p = 0; p < points.pairs; ++p) {
    for (std::size_t side = 0; side < 2; ++side) {
      const auto winner = static_cast<std::size_t>(winners.arm[side][p]);
      ranking.arms[winner].probability += outlook.draw_chance / static_cast<double>(count);
    }
  }
  if (!draw) return;
  const std::size_t taken = random.Below(count);
  const std::size_t pair = taken / 2;
  const std::size_t side = taken % 2;
  const auto share =
      std::ranges::find_if(points.shares, [&](const auto& s) { return pair < s.end; });
  decision.arm = static_cast<std::uint32_t>(winners.arm[side][pair]);
  decision.model = IdOf(share->model);
  ParameterOn(outlook, share->model, parameter);
  for (std::size_t j = 0; j < d; ++j) {
    const double delta = points.deltas[j * points.pairs + pair];
    parameter[j] += side == 0 ? delta : -delta;
  }
  for (std::size_t i = 0; i < arms.count(); ++i) ranking.arms[i].score = score(i, parameter);
}

}  // namespace codband
