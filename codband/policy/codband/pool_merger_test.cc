#include "codband/policy/codband/pool_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "codband/linalg/test_support.h"

namespace codband {
namespace {

using linalg::Observation;

constexpr std::size_t kMergeDim = 4;
constexpr double kMergeNoise = 0.04;

CoDBandOptions FixedOptions() {
  return {.hyper = "fixed", .intercept = false, .lambda = 2, .sigma = std::sqrt(kMergeNoise)};
}

// Observations of one parameter.
std::vector<Observation> Observe(std::uint64_t parameter, std::uint64_t seed, std::size_t count) {
  RandomStream of_parameter({parameter, 0}, 620);
  const std::vector<double> theta = linalg::RandomVector(of_parameter, kMergeDim);
  RandomStream random({seed, parameter}, 621);
  std::vector<Observation> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<double> x = linalg::RandomVector(random, kMergeDim);
    double r = std::sqrt(kMergeNoise) * random.Normal();
    for (std::size_t j = 0; j < kMergeDim; ++j) r += theta[j] * x[j];
    out.emplace_back(x, r);
  }
  return out;
}

PoolRegister MakeRegister(std::uint32_t partition, std::uint64_t version = 1) {
  return {.partition = partition,
          .version = version,
          .prior = linalg::LinearPrior::Isotropic(kMergeDim, 2, kMergeNoise)};
}

void Put(PoolRegister& to, ModelId id, const std::vector<Observation>& data,
         std::uint64_t periods = 3) {
  to.sums.models.push_back(
      {.id = id, .periods = periods, .users = 1, .data = linalg::StatsOf(kMergeDim, data)});
}

ModelId IdOf(std::uint32_t partition, std::uint64_t counter) {
  return ModelPool::FirstId(partition) + counter;
}

// The posterior of own sums and those of the others is that of one pool with all observations.
TEST(PoolMergerTest, PosteriorIsThatOfAllObservationsTogether) {
  std::vector<PoolRegister> registers;
  std::vector<Observation> all;
  for (std::uint32_t p = 0; p < 3; ++p) {
    const auto data = Observe(1, p, 10 + 5 * p);
    all.insert(all.end(), data.begin(), data.end());
    Put(registers.emplace_back(MakeRegister(p)), IdOf(p, 0), data);
  }
  const auto imports = MergePool(FixedOptions(), registers, nullptr);
  ASSERT_EQ(imports.size(), 3U);
  linalg::DenseModel dense(registers[0].prior);
  dense.Add(all, kMergeNoise);
  for (std::uint32_t p = 0; p < 3; ++p) {
    ModelPool pool(registers[p].prior);
    pool.BePartition(p);
    const ModelId own = pool.Create();
    pool.AddPeriods(own, 3, registers[p].sums.models[0].data);
    pool.Import(imports[p].others.models, imports[p].aliases, imports[p].prior);
    ASSERT_EQ(pool.size(), 1U);
    EXPECT_EQ(pool.IndexOf(own), 0U);
    EXPECT_EQ(pool.model(0).id, IdOf(0, 0));
    EXPECT_EQ(pool.total_periods(), 9U);
    const linalg::GaussianPosterior& posterior = pool.model(0).posterior;
    EXPECT_EQ(posterior.stats().m(), all.size());
    EXPECT_LT(linalg::RelativeError(linalg::ToEigen(posterior.mean()), dense.mean()), 1e-10);
    const Eigen::MatrixXd lower = linalg::LowerToEigen(posterior.factor().packed(), kMergeDim);
    EXPECT_LT(linalg::RelativeError(lower * lower.transpose(), dense.precision), 1e-10);
    // What is its own is what it was, to the bit.
    const auto sums = pool.OwnSums();
    ASSERT_EQ(sums.size(), 1U);
    EXPECT_TRUE(std::ranges::equal(sums[0].data.S(), registers[p].sums.models[0].data.S()));
    EXPECT_EQ(sums[0].periods, 3U);
  }
}

// ln Z of a model's observations, densely: N(r | Xm, σ²I + XP⁻¹Xᵀ).
double DenseEvidence(const linalg::LinearPrior& prior, const std::vector<Observation>& data) {
  const auto n = static_cast<Eigen::Index>(data.size());
  Eigen::MatrixXd x(n, static_cast<Eigen::Index>(kMergeDim));
  Eigen::VectorXd r(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    x.row(i) = linalg::ToEigen(data[static_cast<std::size_t>(i)].first).transpose();
    r(i) = data[static_cast<std::size_t>(i)].second;
  }
  const Eigen::VectorXd off = r - x * linalg::ToEigen(prior.mean);
  const Eigen::MatrixXd covariance =
      prior.noise_variance * Eigen::MatrixXd::Identity(n, n) +
      x * linalg::ToEigen(prior.precision).cwiseInverse().asDiagonal() * x.transpose();
  const Eigen::LDLT<Eigen::MatrixXd> solver(covariance);
  return -0.5 * (off.dot(solver.solve(off)) + solver.vectorD().array().log().sum() +
                 static_cast<double>(n) * std::log(2 * std::numbers::pi));
}

// Two models are joined exactly where the dense evidence says so.
TEST(PoolMergerTest, ModelsAreJoinedByTheirEvidence) {
  int joined = 0;
  constexpr int kCases = 60;
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const bool same = i % 2 == 0;
    const auto a = Observe(1, i, 2 + i / 6);
    const auto b = Observe(same ? 1 : 2, i + 1000, 2 + i / 10);
    std::vector<PoolRegister> registers = {MakeRegister(0), MakeRegister(1)};
    registers[0].concentration = 3;
    registers[1].concentration = 5;
    Put(registers[0], IdOf(0, 0), a, 2);
    Put(registers[1], IdOf(1, 0), b, 3);
    std::vector<Observation> both = a;
    both.insert(both.end(), b.begin(), b.end());
    const linalg::LinearPrior& prior = registers[0].prior;
    const double likelihood =
        DenseEvidence(prior, both) - DenseEvidence(prior, a) - DenseEvidence(prior, b);
    const double process = std::lgamma(5) - std::lgamma(2) - std::lgamma(3) - std::log(4.0);
    const bool one = likelihood > 5 && likelihood + process > 0;
    const auto imports = MergePool(FixedOptions(), registers, nullptr);
    EXPECT_EQ(imports[0].aliases.Resolve(IdOf(1, 0)) == IdOf(0, 0), one) << i << ": " << likelihood;
    EXPECT_EQ(imports[0].others.models[0].id, one ? IdOf(0, 0) : IdOf(1, 0));
    joined += one ? 1 : 0;
  }
  EXPECT_GT(joined, kCases / 5);
  EXPECT_LT(joined, kCases * 3 / 4);
}

TEST(PoolMergerTest, ManyCopiesOfFewTastesBecomeFewModels) {
  std::vector<PoolRegister> registers;
  for (std::uint32_t p = 0; p < 6; ++p) {
    registers.push_back(MakeRegister(p));
    for (std::uint64_t k = 0; k < 3; ++k) Put(registers.back(), IdOf(p, k), Observe(k, p, 30));
  }
  const auto imports = MergePool(FixedOptions(), registers, nullptr);
  for (std::uint32_t p = 0; p < 6; ++p) {
    EXPECT_EQ(imports[p].others.models.size(), 3U);
    for (std::uint64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(imports[0].aliases.Resolve(IdOf(p, k)), IdOf(0, k));
      EXPECT_EQ(imports[p].others.models[k].data.m(), 150U);
    }
  }
  // What was joined stays so, also for registers of before.
  const auto later = MergePool(FixedOptions(), registers, &imports[2]);
  EXPECT_EQ(later[0].version, 2U);
  EXPECT_TRUE(later[0].aliases == imports[0].aliases);
}

// The model of visitors without an id is theirs alone.
TEST(PoolMergerTest, TheModelOfNobodyIsNotJoined) {
  std::vector<PoolRegister> registers = {MakeRegister(0), MakeRegister(1)};
  Put(registers[0], IdOf(0, 0), Observe(1, 1, 40));
  Put(registers[1], IdOf(1, 0), Observe(1, 2, 40));
  EXPECT_FALSE(MergePool(FixedOptions(), registers, nullptr)[0].aliases.empty());
  registers[1].nobody = IdOf(1, 0);
  EXPECT_TRUE(MergePool(FixedOptions(), registers, nullptr)[0].aliases.empty());
}

TEST(PoolMergerTest, EvidenceAndItemsAreAddedUp) {
  std::vector<PoolRegister> registers = {MakeRegister(0), MakeRegister(1), MakeRegister(4)};
  for (PoolRegister& one : registers) {
    const std::uint64_t number = one.partition + 1;
    one.sums.evidence.rewards = {.ones = number, .others = 2 * number};
    one.sums.evidence.changes = {.observations = 100 * number, .confirmed = number, .caution = 1};
    one.sums.evidence.departures = {.products = 0.5, .squares = 2};
    one.sums.evidence.credits[0] = 3;
    one.sums.items = {{.id = 9,
                       .shown = number,
                       .squares = 1,
                       .groups = {{.model = 2, .weight = 1, .users = 1}}}};
  }
  registers[2].sums.items[0].id = 8;
  const auto imports = MergePool(FixedOptions(), registers, nullptr);
  const PoolSums& others = imports[1].others;
  EXPECT_EQ(others.evidence.rewards.ones, 6U);
  EXPECT_EQ(others.evidence.rewards.others, 12U);
  EXPECT_EQ(others.evidence.changes.observations, 600U);
  EXPECT_EQ(others.evidence.changes.caution, 2);
  EXPECT_EQ(others.evidence.departures.squares, 4);
  EXPECT_EQ(others.evidence.credits[0], 6);
  ASSERT_EQ(others.items.size(), 2U);
  EXPECT_EQ(others.items[0].id, 8U);
  EXPECT_EQ(imports[2].others.items[0].shown, 3U);
  EXPECT_EQ(imports[2].others.items[0].groups[0].weight, 2);
}

TEST(PoolMergerTest, DamagedBytesAreRefused) {
  PoolRegister one = MakeRegister(3, 7);
  Put(one, IdOf(3, 0), Observe(1, 1, 5));
  const std::string bytes = one.Encode();
  ASSERT_TRUE(PoolRegister::Decode(bytes).ok());
  EXPECT_EQ(PoolRegister::Decode(bytes).value().Encode(), bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 13) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(PoolRegister::Decode(damaged).ok()) << i;
    EXPECT_FALSE(PoolRegister::Decode(bytes.substr(0, i)).ok()) << i;
  }
  const std::string import = MergePool(FixedOptions(), {&one, 1}, nullptr)[0].Encode();
  EXPECT_EQ(PoolImport::Decode(import).value().Encode(), import);
  EXPECT_FALSE(PoolImport::Decode(bytes).ok());
  EXPECT_FALSE(PoolRegister::Decode(import).ok());
}

}  // namespace
}  // namespace codband
