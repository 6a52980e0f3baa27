// The one file that includes Spectra, which takes half a minute to compile.
#include "codband/data/top_eigenpairs.h"

#include <Spectra/SymEigsSolver.h>
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/base/random.h"

namespace codband::data {
namespace {

constexpr std::size_t kDenseSize = 100;  // up to here the dense solver is as fast
constexpr double kTolerance = 1e-12;
constexpr Eigen::Index kMaxRestarts = 3000;

class Operator {
 public:
  using Scalar = double;  // the name that Spectra expects

  Operator(std::size_t n, const SymmetricProduct& multiply) : n_(n), multiply_(multiply) {}

  Eigen::Index rows() const { return static_cast<Eigen::Index>(n_); }
  Eigen::Index cols() const { return rows(); }
  void perform_op(const double* x, double* y) const { multiply_({x, n_}, {y, n_}); }

 private:
  std::size_t n_;
  const SymmetricProduct& multiply_;
};

void AppendVector(const Eigen::VectorXd& vector, Eigenpairs& pairs) {
  const double threshold = vector.cwiseAbs().maxCoeff() * (1 - 1e-9);
  Eigen::Index largest = 0;
  while (std::abs(vector[largest]) < threshold) ++largest;
  const double sign = vector[largest] < 0 ? -1 : 1;
  for (const double value : vector) pairs.vectors.push_back(sign * value);
}

Eigenpairs Dense(std::size_t n, std::size_t count, const SymmetricProduct& multiply) {
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd matrix(size, size);
  Eigen::VectorXd unit = Eigen::VectorXd::Zero(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    unit[i] = 1;
    multiply({unit.data(), n}, {matrix.col(i).data(), n});
    unit[i] = 0;
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::MatrixXd((matrix + matrix.transpose()) / 2));
  CODBAND_CHECK(solver.info() == Eigen::Success);
  Eigenpairs pairs;
  for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(count); ++i) {
    pairs.values.push_back(solver.eigenvalues()[size - 1 - i]);
    AppendVector(solver.eigenvectors().col(size - 1 - i), pairs);
  }
  return pairs;
}

}  // namespace

Result<Eigenpairs> TopEigenpairs(std::size_t n, std::size_t count,
                                 const SymmetricProduct& multiply) {
  CODBAND_CHECK(count > 0 && count <= n);
  const std::size_t krylov = 2 * count + 20;
  if (n <= kDenseSize || krylov >= n) return Dense(n, count, multiply);

  Operator op(n, multiply);
  Spectra::SymEigsSolver<Operator> solver(op, static_cast<Eigen::Index>(count),
                                          static_cast<Eigen::Index>(krylov));
  std::vector<double> start(n);
  RandomStream({.seed = 0, .event = 0}, 0).FillNormal(start);
  solver.init(start.data());
  const Eigen::Index converged =
      solver.compute(Spectra::SortRule::LargestAlge, kMaxRestarts, kTolerance);
  if (solver.info() != Spectra::CompInfo::Successful) {
    return Status(StatusCode::kCheckFailed,
                  fmt::format("{} of {} eigenvectors found after {} restarts", converged, count,
                              kMaxRestarts));
  }
  Eigenpairs pairs;
  const Eigen::MatrixXd vectors = solver.eigenvectors();
  for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(count); ++i) {
    pairs.values.push_back(solver.eigenvalues()[i]);
    AppendVector(vectors.col(i), pairs);
  }
  return pairs;
}

}  // namespace codband::data
