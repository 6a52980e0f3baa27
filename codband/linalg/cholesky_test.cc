#include "codband/linalg/cholesky.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "codband/linalg/kernels.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

Eigen::MatrixXd Product(const CholeskyFactor& factor) {
  const Eigen::MatrixXd lower = LowerToEigen(factor.packed(), factor.dim());
  return lower * lower.transpose();
}

// A factor after `count` updates, and the matrix it should be the factor of.
struct Case {
  CholeskyFactor factor;
  Eigen::MatrixXd matrix;
  std::vector<std::vector<double>> vectors;
};

Case RandomCase(std::uint64_t seed, std::size_t dim, std::size_t count, double diagonal) {
  Case c{CholeskyFactor(dim, diagonal), DenseModel(dim, diagonal).precision, {}};
  for (const auto& [x, r] : RandomObservations(seed, count, dim)) {
    c.factor.Update(x);
    c.matrix += ToEigen(x) * ToEigen(x).transpose();
    c.vectors.push_back(x);
  }
  return c;
}

RC_GTEST_PROP(CholeskyFactorTest, UpdatesEqualTheDenseFactor, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  const auto count = *rc::gen::inRange<std::size_t>(0, 80);
  const Case c = RandomCase(*rc::gen::arbitrary<std::uint32_t>(), dim, count, 0.1);
  RC_ASSERT(RelativeError(Product(c.factor), c.matrix) < 1e-12);
  const Eigen::MatrixXd lower = c.matrix.llt().matrixL();
  RC_ASSERT(std::abs(c.factor.log_determinant() - 2 * lower.diagonal().array().log().sum()) < 1e-9);
}

RC_GTEST_PROP(CholeskyFactorTest, FactorizeEqualsUpdates, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  const Case c = RandomCase(*rc::gen::arbitrary<std::uint32_t>(), dim, 60, 0.5);
  std::vector<double> S(PackedSize(dim));
  for (const auto& x : c.vectors) AddOuter(4, x, S);
  CholeskyFactor factor(dim, 1);
  RC_ASSERT(factor.Factorize(std::vector<double>(factor.dim(), 0.5), 0.25, S));
  RC_ASSERT(RelativeError(Product(factor), c.matrix) < 1e-12);
}

RC_GTEST_PROP(CholeskyFactorTest, ColumnsThatDoNotOccurKeepTheirDiagonal, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  RandomStream random({seed, 2}, 5);
  std::vector<double> diagonal(dim);
  std::vector<bool> occurs(dim);
  for (std::size_t j = 0; j < dim; ++j) {
    diagonal[j] = 0.1 + random.Uniform();
    occurs[j] = random.Below(3) > 0;
  }
  std::vector<double> S(PackedSize(dim));
  Eigen::MatrixXd matrix = ToEigen(diagonal).asDiagonal();
  for (int i = 0; i < 30; ++i) {
    std::vector<double> x = RandomVector(random, dim);
    for (std::size_t j = 0; j < dim; ++j) x[j] = occurs[j] ? x[j] : 0;
    AddOuter(1, x, S);
    matrix += 0.25 * ToEigen(x) * ToEigen(x).transpose();
  }
  CholeskyFactor factor(dim, 1);
  RC_ASSERT(factor.Factorize(diagonal, 0.25, S));
  RC_ASSERT(RelativeError(Product(factor), matrix) < 1e-12);
  const Eigen::MatrixXd lower = LowerToEigen(factor.packed(), dim);
  for (std::size_t j = 0; j < dim; ++j) {
    const auto at = static_cast<Eigen::Index>(j);
    if (occurs[j]) continue;
    RC_ASSERT(lower(at, at) == std::sqrt(diagonal[j]));
    RC_ASSERT(lower.col(at).sum() == lower(at, at) && lower.row(at).sum() == lower(at, at));
  }
}

RC_GTEST_PROP(CholeskyFactorTest, DowndateUndoesUpdate, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  Case c = RandomCase(*rc::gen::arbitrary<std::uint32_t>(), dim, 60, 0.5);
  for (std::size_t i = 0; i < 20; ++i) {
    RC_ASSERT(c.factor.Downdate(c.vectors[i]));
    c.matrix -= ToEigen(c.vectors[i]) * ToEigen(c.vectors[i]).transpose();
  }
  RC_ASSERT(RelativeError(Product(c.factor), c.matrix) < 1e-10);
}

RC_GTEST_PROP(CholeskyFactorTest, SolvesAndQuadraticsEqualTheDenseOnes, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  const auto rows = *rc::gen::inRange<std::size_t>(1, 30);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const Case c = RandomCase(seed, dim, 50, 0.3);
  RandomStream random({seed, 1}, 5);
  const std::vector<double> matrix = RandomVector(random, rows * dim);
  std::vector<double> quadratics(rows);
  c.factor.InverseQuadratics(matrix, quadratics);
  const Eigen::MatrixXd inverse = c.matrix.inverse();
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const double> x = std::span(matrix).subspan(i * dim, dim);
    const Eigen::VectorXd v = ToEigen(x);
    RC_ASSERT(std::abs(quadratics[i] / (v.transpose() * inverse * v).value() - 1) < 1e-9);
    RC_ASSERT(quadratics[i] == c.factor.InverseQuadratic(x));  // the same bits
  }
  std::vector<double> x(matrix.begin(), matrix.begin() + static_cast<std::ptrdiff_t>(dim));
  const Eigen::VectorXd expected = inverse * ToEigen(x);
  c.factor.SolveLower(x);
  c.factor.SolveTransposed(x);
  RC_ASSERT(RelativeError(ToEigen(x), expected) < 1e-9);
}

RC_GTEST_PROP(CholeskyFactorTest, RowsWithoutTheLastColumnHaveAOneThere, ()) {
  const auto columns = *rc::gen::inRange<std::size_t>(1, 40);
  const auto rows = *rc::gen::inRange<std::size_t>(1, 30);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const Case c = RandomCase(seed, columns + 1, 50, 0.3);
  RandomStream random({seed, 1}, 7);
  const std::vector<double> matrix = RandomVector(random, rows * columns);
  std::vector<double> entries = RandomVector(random, columns + 1);
  for (double& entry : entries) entry = 0.1 + std::abs(entry);
  std::vector<double> quadratics(rows);
  std::vector<double> diagonal(rows);
  c.factor.InverseQuadratics(matrix, quadratics, {.entries = entries, .out = diagonal});
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const double> row = std::span(matrix).subspan(i * columns, columns);
    std::vector<double> x(row.begin(), row.end());
    x.push_back(1);
    RC_ASSERT(quadratics[i] == c.factor.InverseQuadratic(x));
    double sum = 0;
    for (std::size_t f = 0; f < columns; ++f) sum += x[f] * x[f] / entries[f];
    RC_ASSERT(diagonal[i] == sum);
  }
}

RC_GTEST_PROP(CholeskyFactorTest, SolvesColumnsAsIfAlone, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 40);
  const auto columns = kLanes * *rc::gen::inRange<std::size_t>(1, 9);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const Case c = RandomCase(seed, dim, 50, 0.3);
  RandomStream random({seed, 1}, 6);
  const std::vector<double> matrix = RandomVector(random, dim * columns);
  std::vector<double> solved = matrix;
  c.factor.SolveTransposedColumns(solved);
  for (std::size_t column = 0; column < columns; ++column) {
    std::vector<double> alone(dim);
    std::vector<double> together(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      alone[i] = matrix[i * columns + column];
      together[i] = solved[i * columns + column];
    }
    c.factor.SolveTransposed(alone);
    RC_ASSERT(RelativeError(ToEigen(together), ToEigen(alone)) < 1e-12);
  }
}

RC_GTEST_PROP(CholeskyFactorTest, InverseEqualsTheDenseOne, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 100);
  const auto count = *rc::gen::inRange<std::size_t>(0, 60);
  const Case c = RandomCase(*rc::gen::arbitrary<std::uint32_t>(), dim, count, 0.3);
  std::vector<double> packed(PackedSize(dim), std::nan(""));
  c.factor.Invert(packed);
  const Eigen::MatrixXd lower = c.matrix.inverse().triangularView<Eigen::Lower>();
  RC_ASSERT(RelativeError(LowerToEigen(packed, dim), lower) < 1e-9);
}

RC_GTEST_PROP(CholeskyFactorTest, InverseTraceIsThatOfTheInverse, ()) {
  const auto dim = *rc::gen::inRange<std::size_t>(1, 80);
  const auto count = *rc::gen::inRange<std::size_t>(0, 80);
  const Case c = RandomCase(*rc::gen::inRange<std::uint64_t>(0, 1000), dim, count, 0.3);
  RandomStream random({1, dim}, 79);
  std::vector<double> scale(dim);
  for (double& value : scale) value = random.Uniform();
  std::vector<double> inverse(PackedSize(dim));
  c.factor.Invert(inverse);
  double trace = 0;
  for (std::size_t j = 0; j < dim; ++j) trace += scale[j] * inverse[PackedColumn(dim, j)];
  RC_ASSERT(std::abs(c.factor.InverseTrace(scale) - trace) <= 1e-10 * trace);
}

TEST(CholeskyFactorTest, GrowingEqualsFactorisingTheLargerMatrixBitForBit) {
  for (const bool intercept : {false, true}) {
    const SufficientStats small = StatsOf(7, RandomObservations(5, 30, 7));
    CholeskyFactor grown(7, 1);
    const std::vector<double> few = {1, 2, 3, 4, 5, 6, 7};
    ASSERT_TRUE(grown.Factorize(few, 0.5, small.S()));
    std::vector<double> many = few;
    many.insert(many.end() - (intercept ? 1 : 0), {8, 9, 10});
    SufficientStats wide = small;
    wide.Grow(10, intercept);
    CholeskyFactor expected(10, 1);
    ASSERT_TRUE(expected.Factorize(many, 0.5, wide.S()));
    grown.Grow(many, intercept);
    EXPECT_TRUE(std::ranges::equal(grown.packed(), expected.packed())) << intercept;
    EXPECT_EQ(grown.log_determinant(), expected.log_determinant());
  }
}

TEST(CholeskyFactorTest, DowndateThatWouldLoseDefinitenessIsRefusedAndChangesNothing) {
  CholeskyFactor factor(3, 1e-8);
  const std::vector<double> x = {1, 2, 3};
  factor.Update(x);
  const std::vector<double> before(factor.packed().begin(), factor.packed().end());
  EXPECT_FALSE(factor.Downdate(x));
  EXPECT_FALSE(factor.Downdate(std::vector<double>{10, 0, 0}));
  EXPECT_EQ(before, std::vector<double>(factor.packed().begin(), factor.packed().end()));
}

TEST(CholeskyFactorTest, FactorizeRaisesPivotsThatRoundingMadeTooSmall) {
  CholeskyFactor factor(2, 1);
  EXPECT_FALSE(
      factor.Factorize(std::vector<double>{0.1, 0.1}, 1, std::vector<double>{1, std::nan(""), 1}));
  for (const double too_small : {1 - 0.1 - 1e-12, -5.0}) {
    EXPECT_TRUE(
        factor.Factorize(std::vector<double>{0.1, 0.1}, 1, std::vector<double>{1, 1, too_small}));
    EXPECT_NEAR(factor.packed()[2] * factor.packed()[2], 0.1, 1e-9);
  }
}

TEST(CholeskyFactorTest, LogDeterminantNeitherOverflowsNorUnderflows) {
  EXPECT_NEAR(CholeskyFactor(1000, 1e12).log_determinant(), 1000 * std::log(1e12), 1e-6);
  EXPECT_NEAR(CholeskyFactor(1000, 1e-12).log_determinant(), -1000 * std::log(1e12), 1e-6);
}

}  // namespace
}  // namespace codband::linalg
