#include "codband/policy/codband/thompson_integral.h"

#include <algorithm>
#include <limits>

#include "codband/base/random.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/vector_clones.h"

namespace codband {
namespace {

constexpr std::size_t kPairs = ThompsonIntegral::kPairs;
constexpr std::size_t kBlock = 4 * linalg::kLanes;  // pairs that are looked at together
constexpr std::size_t kFewestPairs = kBlock;
// Beyond this many products of a feature and a point there are fewer points.
constexpr std::size_t kMostProducts = 1 << 22;

std::size_t PairsFor(std::size_t numbers) {
  std::size_t pairs = kPairs;
  while (pairs > kFewestPairs && numbers * pairs > kMostProducts) pairs /= 2;
  return pairs;
}

CODBAND_VECTOR_CLONES void CompeteAt(const ThompsonIntegral::Arms& arms, std::size_t begin,
                                     std::size_t end, ThompsonIntegral::Points& points) {
  constexpr std::size_t kWide = kBlock / linalg::kLanes;
  const std::size_t pairs = points.pairs;
  const std::size_t d = points.deltas.size() / pairs;
  for (std::size_t block = begin / kBlock * kBlock; block < end; block += kBlock) {
    linalg::Lanes score[2][kWide];
    linalg::Lanes arm[2][kWide];
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t w = 0; w < kWide; ++w) {
        score[side][w] = linalg::AsLanes(points.best_score[side].data() + block)[w];
        arm[side][w] = linalg::AsLanes(points.best_arm[side].data() + block)[w];
      }
    }
    for (std::size_t i = 0; i < arms.centres.size(); ++i) {
      const double* const x = arms.rows.data() + i * d;
      linalg::Lanes spread[kWide] = {};
      for (std::size_t j = 0; j < d; ++j) {
        if (x[j] == 0) continue;  // names that the arm does not have; the same bits without them
        const linalg::Lanes* const delta =
            linalg::AsLanes(points.deltas.data() + j * pairs + block);
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
        points.best_score[side][p] = score[side][(p - block) / linalg::kLanes][p % linalg::kLanes];
        points.best_arm[side][p] = arm[side][(p - block) / linalg::kLanes][p % linalg::kLanes];
      }
    }
  }
}

}  // namespace

ThompsonIntegral::ThompsonIntegral(std::size_t dim, double v)
    : dim_(dim), v_(v), normals_(kPairs * dim) {
  RandomStream random({.seed = 0, .event = 0}, 0);  // the same points always
  random.FillNormal(normals_);
}

std::size_t ThompsonIntegral::Points::ModelAt(std::size_t point) const {
  return std::ranges::find_if(shares, [&](const Share& share) { return point / 2 < share.end; })
      ->model;
}

void ThompsonIntegral::Points::AddDelta(std::size_t point, std::span<double> theta) const {
  for (std::size_t j = 0; j < theta.size(); ++j) {
    const double delta = deltas[j * pairs + point / 2];
    theta[j] += point % 2 == 0 ? delta : -delta;
  }
}

void ThompsonIntegral::Place(const Outlook& outlook, std::size_t numbers, Points& points) const {
  const std::size_t pairs = PairsFor(numbers);
  points.pairs = pairs;
  points.shares.clear();
  points.deltas.resize(dim_ * pairs);
  for (auto& scores : points.best_score) scores.fill(-std::numeric_limits<double>::infinity());
  for (auto& arms : points.best_arm) arms.fill(0);
  const auto position = [&](std::size_t p) {
    return (static_cast<double>(p) + 0.5) / static_cast<double>(pairs);
  };
  double passed = 0;
  std::size_t begin = 0;
  for (std::size_t model = 0; begin < pairs; ++model) {
    passed += outlook.chances[model];
    std::size_t end = begin;
    const bool last = model + 1 == outlook.chances.size();
    while (end < pairs && (last || position(end) <= passed)) ++end;
    if (end == begin) continue;
    points.shares.push_back({model, begin, end});
    PlaceShare(outlook.Posterior(model), points.shares.back(), points);
    begin = end;
  }
}

void ThompsonIntegral::PlaceShare(const linalg::GaussianPosterior& model,
                                  const Points::Share& share, Points& points) const {
  // Whole lanes; what is in them of other models is left where it is.
  std::vector<double>& solved = points.scratch;
  const std::size_t from = share.begin / linalg::kLanes * linalg::kLanes;
  const std::size_t width =
      (share.end - from + linalg::kLanes - 1) / linalg::kLanes * linalg::kLanes;
  solved.resize(dim_ * width);
  for (std::size_t j = 0; j < dim_; ++j) {
    std::ranges::copy(std::span(normals_).subspan(j * kPairs + from, width),
                      solved.begin() + static_cast<std::ptrdiff_t>(j * width));
  }
  model.factor().SolveTransposedColumns(solved);
  for (std::size_t j = 0; j < dim_; ++j) {
    for (std::size_t p = share.begin; p < share.end; ++p) {
      points.deltas[j * points.pairs + p] = v_ * solved[j * width + (p - from)];
    }
  }
}

void ThompsonIntegral::Compete(const Arms& arms, const Points::Share& share, Points& points) const {
  CompeteAt(arms, share.begin, share.end, points);
}

}  // namespace codband
