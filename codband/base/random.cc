#include "codband/base/random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

#include "codband/base/check.h"

namespace codband {

void RandomStream::NextBlock() {
  const r123::Philox4x64::ctr_type counter = {{next_block_++, event_, 0, 0}};
  const r123::Philox4x64::key_type key = {{key_[0], key_[1]}};
  const auto block = r123::Philox4x64{}(counter, key);
  std::copy(block.begin(), block.end(), block_.begin());
  used_ = 0;
}

std::uint64_t RandomStream::Below(std::uint64_t bound) {
  CODBAND_DCHECK(bound > 0);
  // Rejects the incomplete last multiple of `bound` below 2^64, so that there is no modulo bias;
  // a rejection has probability below bound / 2^64.
  const std::uint64_t limit = max() - max() % bound;
  std::uint64_t draw = (*this)();
  while (draw >= limit) draw = (*this)();
  return draw % bound;
}

double RandomStream::Normal() { return boost::random::normal_distribution<double>{}(*this); }

void RandomStream::FillNormal(std::span<double> out) {
  for (double& value : out) value = Normal();
}

double RandomStream::Gamma(double shape) {
  CODBAND_DCHECK(shape > 0);
  // Marsaglia & Tsang (2000). Boost's method takes a tangent in every draw, whose last bit differs
  // between C libraries; here a logarithm only decides on acceptance.
  const double boost = shape < 1 ? std::pow(1 - Uniform(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = Normal();
    const double cube_root = 1 + c * x;
    if (cube_root <= 0) continue;
    const double v = cube_root * cube_root * cube_root;
    const double u = 1 - Uniform();
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return boost * d * v;
  }
}

double RandomStream::Beta(double a, double b) {
  const double x = Gamma(a);
  const double y = Gamma(b);
  return x / (x + y);
}

std::size_t RandomStream::Categorical(std::span<const double> weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  CODBAND_CHECK(std::isfinite(sum) && sum > 0);
  double rest = Uniform() * sum;
  std::size_t last_possible = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last_possible = i;
    rest -= weights[i];
    if (rest < 0) return i;
  }
  return last_possible;  // rounding exhausted the sum
}

std::size_t RandomStream::CategoricalFromLog(std::span<double> log_weights) {
  CODBAND_CHECK(!log_weights.empty());
  const double top = *std::max_element(log_weights.begin(), log_weights.end());
  CODBAND_CHECK(std::isfinite(top));
  double sum = 0;
  for (double& w : log_weights) {
    w = std::exp(w - top);
    sum += w;
  }
  for (double& w : log_weights) w /= sum;
  return Categorical(log_weights);
}

}  // namespace codband
