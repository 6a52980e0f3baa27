#include "codband/data/pca.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/base/random.h"
#include "codband/data/test_support.h"
#include "codband/data/top_eigenpairs.h"

namespace codband::data {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Sparse rows, some columns much heavier than others.
SparseMatrix RandomMatrix(std::size_t rows, std::size_t cols) {
  RandomStream random({.seed = 5, .event = rows}, 1);
  std::vector<SparseMatrix::Entry> entries;
  for (std::uint32_t i = 0; i < rows; ++i) {
    for (int e = 0; e < 6; ++e) {
      const auto column = static_cast<std::uint32_t>(random.Below(cols));
      entries.push_back({i, column, (1 + random.Uniform()) * (column < 8 ? 9.0 - column : 0.3)});
    }
  }
  return SparseMatrix::FromEntries(rows, cols, std::move(entries));
}

void ExpectEqualsDenseSvd(const SparseMatrix& matrix, std::size_t dim) {
  const auto pca = Pca(matrix, dim);
  ASSERT_TRUE(pca.ok()) << pca.status().message();
  const Eigen::MatrixXd dense = DenseOf(matrix);
  const Eigen::RowVectorXd mean = dense.colwise().mean();
  const Eigen::MatrixXd centred = dense.rowwise() - mean;
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(centred, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const double n1 = static_cast<double>(matrix.rows() - 1);
  EXPECT_NEAR(pca.value().total_variance, centred.squaredNorm() / n1, 1e-9);
  const auto d = static_cast<Eigen::Index>(dim);
  const Eigen::Map<const RowMajor> components(pca.value().components.data(), d, dense.cols());
  const Eigen::Map<const RowMajor> scores(pca.value().scores.data(), dense.rows(), d);
  EXPECT_LT((components * components.transpose() - Eigen::MatrixXd::Identity(d, d)).norm(), 1e-9);
  EXPECT_LT((scores - centred * components.transpose()).norm(), 1e-9);
  EXPECT_LT(scores.colwise().sum().norm(), 1e-8);
  for (Eigen::Index i = 0; i < d; ++i) {
    const double sigma = svd.singularValues()[i];
    EXPECT_NEAR(pca.value().variance[static_cast<std::size_t>(i)], sigma * sigma / n1, 1e-9);
    EXPECT_NEAR(std::abs(components.row(i).dot(svd.matrixV().col(i))), 1, 1e-8) << i;
    Eigen::Index largest = 0;
    components.row(i).cwiseAbs().maxCoeff(&largest);
    EXPECT_GT(components(i, largest), 0) << i;
  }
}

TEST(PcaTest, EqualsTheDenseDecompositionOfTheCentredMatrix) {
  ExpectEqualsDenseSvd(RandomMatrix(400, 150), 6);  // by columns, Lanczos
  ExpectEqualsDenseSvd(RandomMatrix(150, 400), 6);  // by rows, Lanczos
  ExpectEqualsDenseSvd(RandomMatrix(40, 30), 25);   // dense
  ExpectEqualsDenseSvd(RandomMatrix(25, 60), 20);
}

TEST(PcaTest, IsTheSameOnEveryRun) {
  const SparseMatrix matrix = RandomMatrix(300, 200);
  EXPECT_EQ(Pca(matrix, 5).value().scores, Pca(matrix, 5).value().scores);
}

TEST(PcaTest, TooManyComponentsAreRefused) {
  const SparseMatrix matrix = RandomMatrix(10, 20);
  EXPECT_EQ(Pca(matrix, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Pca(matrix, 10).status().code(), StatusCode::kInvalidArgument);
  // Four rows that vary along one line.
  const SparseMatrix line =
      SparseMatrix::FromEntries(4, 3, {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}, {3, 0, 5}});
  EXPECT_TRUE(Pca(line, 1).ok());
  const auto two = Pca(line, 2);
  EXPECT_EQ(two.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(two.status().message().find("1 directions"), std::string::npos);
}

TEST(PcaTest, StandardiseGivesMeanZeroAndVarianceOne) {
  std::vector<double> values = {1, 5, 3, 5, 8, 5};  // two columns, the second constant
  Standardise(values, 2);
  EXPECT_NEAR(values[0] + values[2] + values[4], 0, 1e-15);
  EXPECT_NEAR(values[0] * values[0] + values[2] * values[2] + values[4] * values[4], 3, 1e-14);
  EXPECT_NEAR(values[2] / values[0], 1.0 / 3, 1e-14);  // (3 - 4) / (1 - 4)
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[5], 0);
}

// The path with n nodes: eigenvalues 2 cos(π k / (n + 1)).
TEST(TopEigenpairsTest, PathGraphHasItsKnownEigenvalues) {
  for (const std::size_t n : {5U, 80U, 300U}) {
    const auto pairs = TopEigenpairs(n, 4, [](std::span<const double> x, std::span<double> y) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = (i > 0 ? x[i - 1] : 0) + (i + 1 < x.size() ? x[i + 1] : 0);
      }
    });
    ASSERT_TRUE(pairs.ok()) << pairs.status().message();
    for (std::size_t k = 1; k <= 4; ++k) {
      const double angle = 3.141592653589793 * static_cast<double>(k) / static_cast<double>(n + 1);
      EXPECT_NEAR(pairs.value().values[k - 1], 2 * std::cos(angle), 1e-10) << n;
      const auto vector = pairs.value().vector(k - 1);
      // sin(π k i / (n + 1)), scaled
      EXPECT_NEAR(vector[1] / vector[0], std::sin(2 * angle) / std::sin(angle), 1e-6) << n;
    }
  }
}

}  // namespace
}  // namespace codband::data
