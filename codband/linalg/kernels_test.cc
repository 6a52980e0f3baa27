#include "codband/linalg/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "codband/base/random.h"
#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

TEST(KernelsTest, DotAddsEveryElementOnce) {
  for (std::size_t n = 0; n < 20; ++n) {
    std::vector<double> a(n);
    std::vector<double> b(n);
    double expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<double>(i + 1);
      b[i] = static_cast<double>(1 << i);
      expected += a[i] * b[i];
    }
    EXPECT_EQ(Dot(a, b), expected) << n;
  }
}

TEST(KernelsTest, RowsAreMultipliedAsByDot) {
  RandomStream random({1, 0}, 8);
  for (std::size_t dim = 1; dim < 20; ++dim) {
    const std::vector<double> rows = RandomVector(random, 7 * dim);
    const std::vector<double> x = RandomVector(random, dim);
    std::vector<double> products(7);
    MultiplyRows(rows, x, products);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(products[i], Dot(std::span(rows).subspan(i * dim, dim), x));
    }
  }
}

TEST(KernelsTest, AddOuterFillsTheLowerTriangle) {
  std::vector<double> packed(6);
  AddOuter(2, std::vector<double>{1, 2, 3}, packed);
  EXPECT_EQ(packed, (std::vector<double>{2, 4, 6, 8, 12, 18}));
}

TEST(KernelsTest, AllWithinFindsWhatIsLargeOrNotANumber) {
  std::vector<double> values(11, -3);
  EXPECT_TRUE(AllWithin(values, 3));
  EXPECT_FALSE(AllWithin(values, 2.9));
  for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity(), 3.1}) {
    for (std::size_t place = 0; place < values.size(); ++place) {
      std::vector<double> damaged = values;
      damaged[place] = bad;
      EXPECT_FALSE(AllWithin(damaged, 3)) << bad << " at " << place;
    }
  }
}

TEST(KernelsTest, LogProductEqualsTheSumOfLogs) {
  LogProduct product;
  double sum = 0;
  for (const double factor : {1e150, 1e150, 1e150, 3.0, 1e-180, 1e-180, 1e-180, 1e-180}) {
    product.Multiply(factor);
    sum += std::log(factor);
  }
  EXPECT_NEAR(product.Log(), sum, 1e-9);
}

}  // namespace
}  // namespace codband::linalg
