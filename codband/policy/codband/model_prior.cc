#include "codband/policy/codband/model_prior.h"

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/policy/codband/codband.h"

namespace codband {

ModelPrior::ModelPrior(const Experts& experts) : experts_(experts) {
  CODBAND_CHECK(experts.recency <= RecencyClock::kRates);
  if (experts.popularity) credits_[kPopularity] = 1;
  if (experts.friends) credits_[kFriend] = 1;
  for (std::size_t rate = 0; rate < experts.recency; ++rate) credits_[kFirstRate + rate] = 1;
}

ModelPrior MakeCrpPrior(const CoDBandOptions&) { return ModelPrior(ModelPrior::Experts{}); }

ModelPrior MakeHawkesPrior(const CoDBandOptions& options) {
  const bool one_constant = options.decay > 0;
  return ModelPrior(
      {.popularity = !one_constant, .recency = one_constant ? 1 : RecencyClock::kRates});
}

ModelPrior MakeFriendsPrior(const CoDBandOptions&) { return ModelPrior({.friends = true}); }

double ModelPrior::Share(const ModelPool& pool, const Visitor& visitor, std::size_t expert,
                         std::size_t k) const {
  const PoolModel& model = pool.model(k);
  const bool own = visitor.own == k;
  if (expert == kPopularity) return static_cast<double>(model.periods - (own ? 1 : 0));
  if (expert == kFriend) {
    return static_cast<double>(std::ranges::count(visitor.friends, model.id));
  }
  const std::size_t rate = expert - kFirstRate;
  double mass = model.recency.At(pool.clock(), rate);
  if (own && visitor.recency != nullptr) mass -= visitor.recency->At(pool.clock(), rate);
  return std::max(mass, 0.0);
}

void ModelPrior::Weights(const ModelPool& pool, double concentration, const Visitor& visitor,
                         std::span<double> out) const {
  CODBAND_DCHECK(out.size() == pool.size() + 1);
  double credit = 0;
  for (std::size_t expert = 0; expert < kExperts; ++expert) credit += Credit(expert);
  const double others =
      static_cast<double>(pool.total_periods()) - (visitor.own.has_value() ? 1 : 0);
  const double existing = others / (others + concentration);
  std::ranges::fill(out, 0.0);
  out[pool.size()] = 1 - existing;
  if (others == 0) return;
  double silent = 0;  // the weight of experts without an opinion
  for (std::size_t expert = kExperts; expert-- > 0;) {
    double weight = Credit(expert) / credit;
    if (expert == kPopularity) weight += silent;
    if (weight == 0) continue;
    double total = 0;
    if (expert == kPopularity) {
      total = others;
    } else {
      for (std::size_t k = 0; k < pool.size(); ++k) total += Share(pool, visitor, expert, k);
    }
    if (total == 0) {
      silent += weight;
      continue;
    }
    const double scale = existing * weight / total;
    for (std::size_t k = 0; k < pool.size(); ++k) {
      out[k] += scale * Share(pool, visitor, expert, k);
    }
  }
}

void ModelPrior::Learn(const ModelPool& pool, const Visitor& visitor, std::size_t index) {
  std::array<double, kExperts> chances{};
  double sum = 0;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    if (!Uses(expert)) continue;
    double total = 0;
    for (std::size_t k = 0; k < pool.size(); ++k) total += Share(pool, visitor, expert, k);
    if (total == 0) return;  // without an opinion of all of them nothing is learned
    chances[expert] = Credit(expert) * Share(pool, visitor, expert, index) / total;
    sum += chances[expert];
  }
  if (sum == 0) return;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    credits_[expert] += chances[expert] / sum;
  }
}

// Each started with one.
ModelPrior::Credits ModelPrior::OwnCredits() const {
  Credits credits = credits_;
  for (double& credit : credits) credit = std::max(0.0, credit - 1);
  return credits;
}

void ModelPrior::SetOwn(const Credits& credits) {
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    if (Uses(expert)) credits_[expert] = 1 + credits[expert];
  }
}

void ModelPrior::Save(ByteWriter& out) const { out.Doubles(credits_); }

void ModelPrior::Load(ByteReader& in) {
  std::array<double, kExperts> credits{};
  in.Doubles("credits of the model prior", credits);
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    if ((credits[expert] > 0) != Uses(expert) || credits[expert] < 0) {
      in.Fail("credits of the model prior", "are not those of this prior");
      return;
    }
  }
  credits_ = credits;
}

std::size_t DrawModel(std::span<const double> weights, RandomStream& random) {
  double rest = random.Uniform();
  for (std::size_t k = 0; k + 1 < weights.size(); ++k) {
    rest -= weights[k];
    if (rest < 0) return k;
  }
  return weights.size() - 1;
}

double ResampleConcentration(double concentration, std::uint64_t models, std::uint64_t periods,
                             double a, double b, RandomStream& random) {
  CODBAND_DCHECK(models > 0 && periods > 0);
  const auto k = static_cast<double>(models);
  const auto n = static_cast<double>(periods);
  const double eta = random.Beta(concentration + 1, n);
  const double rate = b - std::log(eta);
  const double odds = (a + k - 1) / (n * rate);
  const bool high = random.Uniform() * (1 + odds) < odds;
  // A tiny shape may give exactly 0, from which there is no way back.
  constexpr double kLeast = 1e-100;
  return std::max(kLeast, random.Gamma(high ? a + k : a + k - 1) / rate);
}

}  // namespace codband
