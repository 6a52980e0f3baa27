#include "codband/linalg/covariance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/test_support.h"

namespace codband::linalg {
namespace {

constexpr std::size_t kWideDim = Covariance::kNarrow + 7;

struct SparseVector {
  std::vector<std::uint16_t> places;
  std::vector<double> values;

  std::vector<double> Dense(std::size_t dim) const {
    std::vector<double> out(dim, 0.0);
    for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = values[i];
    return out;
  }
};

SparseVector RandomSparse(RandomStream& random, std::size_t dim) {
  SparseVector out;
  for (std::size_t i = 0; i < dim; ++i) {
    if (random.Below(8) != 0) continue;
    out.places.push_back(static_cast<std::uint16_t>(i));
    out.values.push_back(random.Normal());
  }
  return out;
}

// Every entry, as variances of sums of two unit vectors.
Eigen::MatrixXd ToDense(const Covariance& covariance, std::size_t dim) {
  const auto variance = [&](std::vector<std::uint16_t> places) {
    return covariance.Variance(places, std::vector<double>(places.size(), 1.0));
  };
  const auto d = static_cast<Eigen::Index>(dim);
  Eigen::MatrixXd out(d, d);
  for (std::uint16_t i = 0; i < dim; ++i) out(i, i) = variance({i});
  for (std::uint16_t j = 0; j < dim; ++j) {
    for (std::uint16_t i = j + 1; i < dim; ++i) {
      out(i, j) = out(j, i) = 0.5 * (variance({j, i}) - out(i, i) - out(j, j));
    }
  }
  return out;
}

// A posterior and its covariance.
struct Followed {
  explicit Followed(const LinearPrior& prior) : posterior(prior), noise(prior.noise_variance) {
    covariance.Refresh(posterior.factor());
  }
  void Add(const std::vector<double>& x, double r) {
    covariance.Change(posterior.factor(), x, 1 / noise);
    posterior.Add(x, r);
  }
  void Remove(const std::vector<double>& x, double r) {
    covariance.Change(posterior.factor(), x, -1 / noise);
    posterior.Remove(x, r);
  }

  GaussianPosterior posterior;
  double noise;
  Covariance covariance;
};

TEST(CovarianceTest, AnySequenceOfChangesEqualsTheDenseModel) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const LinearPrior prior = RandomPrior(seed, kWideDim, 0.25);
    Followed model(prior);
    RandomStream random({seed, 0}, 81);
    std::vector<Observation> held;
    for (int step = 0; step < 150; ++step) {
      if (!held.empty() && random.Below(4) == 0) {
        model.Remove(held.back().first, held.back().second);
        held.pop_back();
      } else {
        held.emplace_back(RandomSparse(random, kWideDim).Dense(kWideDim), random.Normal());
        model.Add(held.back().first, held.back().second);
      }
      if (!model.covariance.known()) model.covariance.Refresh(model.posterior.factor());
    }
    ASSERT_TRUE(model.covariance.known());
    DenseModel dense(prior);
    dense.Add(held, 0.25);
    EXPECT_LT(RelativeError(ToDense(model.covariance, kWideDim), dense.covariance()), 1e-9);
    const SparseVector x = RandomSparse(random, kWideDim);
    const double solved = model.posterior.Variance(x.Dense(kWideDim));
    EXPECT_NEAR(model.covariance.Variance(x.places, x.values), solved, 1e-9 * solved);
    EXPECT_NEAR(model.covariance.Variance(x.Dense(kWideDim)), solved, 1e-9 * solved);
  }
}

TEST(CovarianceTest, StaysCloseOverManyChangesAndIsThenFoundAnew) {
  Followed model(LinearPrior::Isotropic(kWideDim, 1, 0.01));
  RandomStream random({7, 0}, 82);
  std::vector<Observation> held;
  std::uint64_t changes = 0;
  double worst = 0;
  while (model.covariance.known()) {
    held.emplace_back(RandomSparse(random, kWideDim).Dense(kWideDim), random.Normal());
    model.Add(held.back().first, held.back().second);
    ++changes;
    if (held.size() > 200 && model.covariance.known()) {
      const Observation& oldest = held[held.size() - 200];
      model.Remove(oldest.first, oldest.second);
      ++changes;
    }
    if (changes % 100 > 1 || !model.covariance.known()) continue;
    const SparseVector x = RandomSparse(random, kWideDim);
    const double solved = model.posterior.Variance(x.Dense(kWideDim));
    const double error = std::abs(model.covariance.Variance(x.places, x.values) - solved) / solved;
    worst = std::max(worst, error);
  }
  EXPECT_EQ(changes, Covariance::kRefreshInterval);
  EXPECT_LT(worst, 1e-9);
  EXPECT_GT(worst, 0);
  model.covariance.Refresh(model.posterior.factor());
  EXPECT_TRUE(model.covariance.known());
}

TEST(CovarianceTest, GrowsAsIfTheNewColumnsHadAlwaysBeenThere) {
  for (const bool intercept : {false, true}) {
    Followed model(RandomPrior(3, kWideDim, 0.25));
    RandomStream random({8, 0}, 83);
    for (int i = 0; i < 40; ++i) model.Add(RandomSparse(random, kWideDim).Dense(kWideDim), 1);
    constexpr std::size_t kMore = kWideDim + 5;
    LinearPrior grown = RandomPrior(4, kMore, 0.25);
    const LinearPrior before = RandomPrior(3, kWideDim, 0.25);
    for (std::size_t i = 0; i < kWideDim; ++i) {
      const std::size_t to = intercept && i + 1 == kWideDim ? kMore - 1 : i;
      grown.precision[to] = before.precision[i];
      grown.mean[to] = before.mean[i];
    }
    model.posterior.Grow(grown, intercept);
    model.covariance.Grow(grown.precision, intercept);
    Covariance anew;
    anew.Refresh(model.posterior.factor());
    EXPECT_LT(RelativeError(ToDense(model.covariance, kMore), ToDense(anew, kMore)), 1e-10);
  }
}

TEST(CovarianceTest, ARemovalThatWouldLoseDigitsMakesItUnknown) {
  Followed model(LinearPrior::Isotropic(kWideDim, 1e-4, 1e-6));
  const std::vector<double> x(kWideDim, 0.5);
  model.Add(x, 1);
  EXPECT_TRUE(model.covariance.known());
  model.Remove(x, 1);
  EXPECT_FALSE(model.covariance.known());
}

TEST(CovarianceTest, OfFewFeaturesIsNeverKnown) {
  const GaussianPosterior narrow(Covariance::kNarrow, 1, 1);
  Covariance covariance;
  covariance.Refresh(narrow.factor());
  EXPECT_FALSE(covariance.known());
}

TEST(CovarianceTest, IsReadBackBitForBitAndRefusedWhereItCannotBe) {
  Followed model(RandomPrior(5, kWideDim, 0.25));
  RandomStream random({9, 0}, 84);
  for (int i = 0; i < 40; ++i) model.Add(RandomSparse(random, kWideDim).Dense(kWideDim), 1);
  ByteWriter out;
  model.covariance.Save(out);
  Covariance loaded;
  ByteReader in(out.bytes());
  loaded.Load(in, kWideDim);
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_EQ(ToDense(loaded, kWideDim), ToDense(model.covariance, kWideDim));
  ByteWriter again;
  loaded.Save(again);
  EXPECT_EQ(again.bytes(), out.bytes());

  ByteReader cut(std::string_view(out.bytes()).substr(0, 100));
  loaded.Load(cut, kWideDim);
  EXPECT_FALSE(cut.ok());
  EXPECT_FALSE(loaded.known());
  ByteReader narrow(out.bytes());
  loaded.Load(narrow, Covariance::kNarrow);
  EXPECT_FALSE(narrow.ok());
}

}  // namespace
}  // namespace codband::linalg
