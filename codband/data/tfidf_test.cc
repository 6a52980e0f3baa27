#include "codband/data/tfidf.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/data/test_support.h"

namespace codband::data {
namespace {

// Three documents, three terms: "a a b", "a c", "".
SparseMatrix Counts() {
  return SparseMatrix::FromEntries(3, 3, {{0, 0, 1}, {0, 1, 1}, {0, 0, 1}, {1, 2, 1}, {1, 0, 1}});
}

TEST(SparseMatrixTest, DuplicateEntriesAreSummed) {
  Eigen::Matrix3d expected;
  expected << 2, 1, 0, 1, 0, 1, 0, 0, 0;
  EXPECT_EQ(DenseOf(Counts()), expected);
}

TEST(SparseMatrixTest, ProductsEqualDenseOnes) {
  const SparseMatrix matrix = SparseMatrix::FromEntries(2, 3, {{0, 2, 1.5}, {1, 0, -2}, {1, 1, 4}});
  const std::vector<double> x = {1, 2, 3};
  std::vector<double> y(2);
  matrix.Multiply(x, y);
  EXPECT_EQ(y, (std::vector<double>{4.5, 6}));
  std::vector<double> z(3, 7.0);
  matrix.MultiplyTransposed(y, z);
  EXPECT_EQ(z, (std::vector<double>{-12, 24, 6.75}));
}

TEST(TfIdfTest, WeightsAreTheDocumentedOnes) {
  const double rare = std::log(4.0 / 2) + 1;    // in one of three documents
  const double common = std::log(4.0 / 3) + 1;  // in two
  const Eigen::MatrixXd weights = DenseOf(TfIdf(Counts()));
  const double norm = std::hypot(2 * common, rare);
  EXPECT_NEAR(weights(0, 0), 2 * common / norm, 1e-15);
  EXPECT_NEAR(weights(0, 1), rare / norm, 1e-15);
  EXPECT_NEAR(weights(1, 2) / weights(1, 0), rare / common, 1e-15);
  EXPECT_NEAR(weights.row(1).norm(), 1, 1e-15);
  EXPECT_EQ(weights.row(2).norm(), 0);
}

TEST(TfIdfTest, LogarithmOfTheCount) {
  const Eigen::MatrixXd weights = DenseOf(TfIdf(Counts(), {.log_tf = true}));
  const double rare = std::log(2.0) + 1;
  const double common = std::log(4.0 / 3) + 1;
  EXPECT_NEAR(weights(0, 0) / weights(0, 1), (1 + std::log(2.0)) * common / rare, 1e-15);
}

TEST(TfIdfTest, RareTermsAreDropped) {
  const Eigen::MatrixXd weights = DenseOf(TfIdf(Counts(), {.min_documents = 2}));
  Eigen::Matrix3d expected;
  expected << 1, 0, 0, 1, 0, 0, 0, 0, 0;
  EXPECT_EQ(weights, expected);
}

}  // namespace
}  // namespace codband::data
