#include "codband/policy/codband/crp.h"

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"

namespace codband {

std::optional<std::size_t> DrawFromCrp(const ModelPool& pool, double concentration,
                                       RandomStream& random) {
  double rest = random.Uniform() * (static_cast<double>(pool.total_periods()) + concentration);
  for (std::size_t k = 0; k < pool.size(); ++k) {
    rest -= static_cast<double>(pool.model(k).periods);
    if (rest < 0) return k;
  }
  return std::nullopt;
}

void AddCrpLogWeights(const ModelPool& pool, double concentration, std::size_t own,
                      std::span<double> out) {
  CODBAND_DCHECK(out.size() == pool.size() + 1);
  for (std::size_t k = 0; k < pool.size(); ++k) {
    const std::uint64_t others = pool.model(k).periods - (k == own ? 1 : 0);
    out[k] += std::log(static_cast<double>(others));  // ln 0 = -∞: a model of this period alone
  }
  out[pool.size()] += std::log(concentration);
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
