#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// The chances of the arms with the largest score, which share `chance`. Returns how many there are.
std::size_t ShareAmongBest(double best, double chance, std::span<Ranking::Arm> arms) {
  const auto equals =
      static_cast<std::size_t>(std::ranges::count(arms, best, &Ranking::Arm::score));
  CODBAND_CHECK(equals > 0);  // the scores are numbers
  for (Ranking::Arm& arm : arms) {
    arm.probability = arm.score == best ? chance / static_cast<double>(equals) : 0;
  }
  return equals;
}

}  // namespace

// As DoChoose, but the draw of θ is one of a fixed set of points instead of a new one each time.
// How many of them an arm wins is then its chance under Thompson sampling (thompson_integral.h).
void CoDBand::DoRank(UserId user, ArmsView given, EventKey key, Ranking& ranking) const {
  ChooseWorkspace& work = ChooseWorkspace::OfThisThread();
  const ArmsView arms = See(given, work);
  Outlook outlook = LookAt(user, arms, work);
  ScoreArms(outlook, arms, work, ranking);
  ranking.intercept += hyper_.scales().ShiftedIntercept(ranking.theta);

  Decision& decision = ranking.decision;
  decision.period = outlook.period;
  decision.model = outlook.IdOf(outlook.likeliest);
  const double best = std::ranges::max(ranking.arms, {}, &Ranking::Arm::score).score;
  const std::size_t equals = ShareAmongBest(best, 1 - outlook.draw_chance, ranking.arms);

  RandomStream random = StreamFor(key, DrawPurpose::kStrategy);
  const bool draw = random.Uniform() < outlook.draw_chance;
  if (!draw) {
    std::size_t skip = equals > 1 ? random.Below(equals) : 0;
    std::size_t arm = 0;
    while (ranking.arms[arm].score != best || skip-- > 0) ++arm;
    decision.arm = static_cast<std::uint32_t>(arm);
  }
  if (outlook.draw_chance == 0) return;

  const ThompsonIntegral::Points& points = work.points;
  const std::size_t count = points.count();
  ranking.draws = count;
  for (std::size_t point = 0; point < count; ++point) {
    ranking.arms[points.ArmAt(point)].probability +=
        outlook.draw_chance / static_cast<double>(count);
  }
  if (!draw) return;
  const std::size_t taken = random.Below(count);
  decision.arm = static_cast<std::uint32_t>(points.ArmAt(taken));
  decision.model = outlook.IdOf(points.ModelAt(taken));
  FeatureVector theta(inner_dim());
  outlook.MeanOn(points.ModelAt(taken), theta.values());
  points.AddDelta(taken, theta.values());
  for (std::size_t i = 0; i < arms.count(); ++i) {
    ranking.arms[i].score = Score(arms.arm(i), theta) + outlook.Added(i);
  }
}

// Means and widths of all arms and, where θ may be drawn, who wins at each point of the integral.
void CoDBand::ScoreArms(Outlook& outlook, ArmsView arms, ChooseWorkspace& work,
                        Ranking& ranking) const {
  const std::size_t d = inner_dim();
  ranking.theta.resize(d);
  if (outlook.expected.empty()) {
    outlook.Mean(ranking.theta);
  } else {
    std::ranges::copy(outlook.expected, ranking.theta.begin());
  }
  if (options_.intercept) {
    ranking.intercept = ranking.theta.back();
    ranking.theta.pop_back();
  }
  if (outlook.draw_chance > 0) integral_.Place(outlook, arms.features.size(), work.points);
  if (outlook.variances.empty()) static_cast<void>(FindVariances(arms, work, outlook));
  for (std::size_t i = 0; i < arms.count(); ++i) {
    Ranking::Arm& arm = ranking.arms[i];
    arm.mean = outlook.means.empty() ? linalg::Dot(arms.arm(i), ranking.theta) : outlook.means[i];
    arm.mean += ranking.intercept;
    arm.score = arm.mean + outlook.Added(i);
    arm.item = outlook.ItemMean(i);
    arm.mean += arm.item;
    arm.width = std::sqrt(outlook.variances[i] + outlook.ItemVariance(i));
  }
  if (outlook.draw_chance == 0) return;
  work.rows.resize(kArmsTogether * d);
  for (std::size_t first = 0; first < arms.count(); first += kArmsTogether) {
    const std::size_t count = std::min(kArmsTogether, arms.count() - first);
    const std::span<double> rows = std::span(work.rows).first(count * d);
    for (std::size_t i = 0; i < count; ++i) Extend(arms.arm(first + i), rows.subspan(i * d, d));
    LetCompete(outlook, arms, first, rows, work.points);
  }
}

double CoDBand::FeatureWeight(std::span<const double> features) const {
  if (!hyper_.DampsLengths()) return 1;
  FeatureVector x(features.size());
  std::ranges::copy(features, x.values().begin());
  hyper_.scales().Shift(x.values());
  return hyper_.LengthFactor(x);
}

// The arms from `first` on whose features, as the models see them, are in `rows`.
void CoDBand::LetCompete(const Outlook& outlook, ArmsView arms, std::size_t first,
                         std::span<const double> rows, ThompsonIntegral::Points& points) const {
  const std::size_t count = rows.size() / inner_dim();
  std::array<double, kArmsTogether> centres;
  FeatureVector theta(inner_dim());
  for (const ThompsonIntegral::Points::Share& share : points.shares) {
    outlook.MeanOn(share.model, theta.values());
    for (std::size_t i = 0; i < count; ++i) {
      centres[i] = Score(arms.arm(first + i), theta) + outlook.Added(first + i);
    }
    integral_.Compete({.rows = rows, .centres = {centres.data(), count}, .first = first}, share,
                      points);
  }
}

}  // namespace codband
