#pragma once

// Dense counterparts of the packed kernels, for tests: Eigen, straight from the formulas.

#include <Eigen/Dense>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "codband/base/random.h"
#include "codband/linalg/linear_prior.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/sufficient_stats.h"

namespace codband::linalg {

using Observation = std::pair<std::vector<double>, double>;

inline std::vector<double> RandomVector(RandomStream& random, std::size_t dim, double scale = 1) {
  std::vector<double> v(dim);
  for (double& value : v) value = scale * random.Normal();
  return v;
}

inline std::vector<Observation> RandomObservations(std::uint64_t seed, std::size_t count,
                                                   std::size_t dim) {
  RandomStream random({seed, 0}, 77);
  std::vector<Observation> observations;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> x = RandomVector(random, dim, 0.4);
    const double r = random.Normal();
    observations.emplace_back(std::move(x), r);
  }
  return observations;
}

inline SufficientStats StatsOf(std::size_t dim, std::span<const Observation> data) {
  SufficientStats stats(dim);
  for (const auto& [x, r] : data) stats.Add(x, r);
  return stats;
}

// A prior with a different precision and mean for every coordinate.
inline LinearPrior RandomPrior(std::uint64_t seed, std::size_t dim, double noise_variance) {
  RandomStream random({seed, 0}, 78);
  LinearPrior prior = LinearPrior::Isotropic(dim, 1, noise_variance);
  for (double& precision : prior.precision) precision = 0.1 + 30 * random.Uniform();
  prior.mean = RandomVector(random, dim);
  return prior;
}

inline Eigen::VectorXd ToEigen(std::span<const double> v) {
  return Eigen::Map<const Eigen::VectorXd>(v.data(), static_cast<Eigen::Index>(v.size()));
}

// The lower triangular matrix that `packed` holds.
inline Eigen::MatrixXd LowerToEigen(std::span<const double> packed, std::size_t dim) {
  const auto d = static_cast<Eigen::Index>(dim);
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(d, d);
  for (std::size_t j = 0; j < dim; ++j) {
    for (std::size_t i = j; i < dim; ++i) {
      dense(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          packed[PackedColumn(dim, j) + i - j];
    }
  }
  return dense;
}

// A linear Gaussian model recomputed from all its observations.
struct DenseModel {
  Eigen::MatrixXd precision;
  Eigen::VectorXd information;

  DenseModel(std::size_t dim, double prior_precision)
      : precision(prior_precision * Eigen::MatrixXd::Identity(static_cast<Eigen::Index>(dim),
                                                              static_cast<Eigen::Index>(dim))),
        information(Eigen::VectorXd::Zero(static_cast<Eigen::Index>(dim))) {}

  explicit DenseModel(const LinearPrior& prior)
      : precision(ToEigen(prior.precision).asDiagonal()),
        information(ToEigen(prior.precision).cwiseProduct(ToEigen(prior.mean))) {}

  void Add(std::span<const Observation> observations, double noise_variance) {
    for (const auto& [x, r] : observations) {
      precision += ToEigen(x) * ToEigen(x).transpose() / noise_variance;
      information += ToEigen(x) * r / noise_variance;
    }
  }
  Eigen::MatrixXd covariance() const { return precision.inverse(); }
  Eigen::VectorXd mean() const { return precision.ldlt().solve(information); }
};

// The largest difference, relative to the magnitude of the second.
inline double RelativeError(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff() / std::max(1e-300, b.cwiseAbs().maxCoeff());
}

inline double LogNormal(double value, double mean, double variance) {
  return -0.5 *
         (std::log(2 * std::numbers::pi * variance) + (value - mean) * (value - mean) / variance);
}

}  // namespace codband::linalg
