#include "codband/policy/codband/column_groups.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "codband/linalg/test_support.h"
#include "codband/policy/codband/prior_learner.h"

namespace codband {
namespace {

constexpr std::array<std::uint32_t, 8> kGroups = {0, 0, 0, 0, 1, 1, 1, 1};

// 200 models of eight features: tastes differ in the first four by `first`, in the others by
// `second`. All like the last feature.
ModelPool Pool(const linalg::LinearPrior& prior, double first, double second) {
  RandomStream random({3, 3}, 3);
  ModelPool pool(prior);
  for (int k = 0; k < 200; ++k) {
    linalg::SufficientStats data(9);
    std::vector<double> theta = linalg::RandomVector(random, 8);
    for (std::size_t j = 0; j < 8; ++j) theta[j] *= j < 4 ? first : second;
    theta[7] += 0.8;
    for (int i = 0; i < 30; ++i) {
      std::vector<double> x = linalg::RandomVector(random, 8);
      const double r = linalg::ToEigen(x).dot(linalg::ToEigen(theta)) + 0.3 * random.Normal();
      x.push_back(1);
      data.Add(x, r);
    }
    pool.AddPeriods(pool.Create(), 1, data);
  }
  return pool;
}

linalg::LinearPrior Learned(double first, double second, bool grouped) {
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(9, 1, 1);
  ModelPool pool = Pool(prior, first, second);
  PriorLearner learner(9, true, true, 0, 0);
  if (grouped) learner.groups().Set(kGroups);
  for (int i = 0; i < 60; ++i) {
    learner.Relearn(pool, false, prior);
    pool.SetPrior(prior);
  }
  return prior;
}

TEST(ColumnGroupsTest, EachGroupFindsThePrecisionThatItsParametersCameFrom) {
  const linalg::LinearPrior prior = Learned(0.5, 0.05, true);
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_EQ(prior.precision[j], prior.precision[j < 4 ? 0 : 4]);
  }
  // 800 parameters of each group; the second ones are of the size of what is unknown of them.
  EXPECT_NEAR(1 / std::sqrt(prior.precision[0]), 0.5, 0.05);
  EXPECT_NEAR(1 / std::sqrt(prior.precision[4]), 0.05, 0.02);
  // What all agree on is not worth nothing.
  EXPECT_NEAR(prior.mean[7], 0.8, 0.05);
  const linalg::LinearPrior common = Learned(0.5, 0.05, false);
  EXPECT_EQ(common.precision[0], common.precision[4]);
}

TEST(ColumnGroupsTest, GroupsThatAreAlikeStayAlike) {
  const linalg::LinearPrior grouped = Learned(0.5, 0.5, true);
  const linalg::LinearPrior common = Learned(0.5, 0.5, false);
  EXPECT_NEAR(grouped.precision[0] / common.precision[0], 1, 0.15);
  EXPECT_NEAR(grouped.precision[4] / common.precision[0], 1, 0.15);
}

double Whole(std::size_t) { return 1; }

TEST(ColumnGroupsTest, AGroupOfWhichNothingIsKnownOrThatIsAloneIsLikeAll) {
  ColumnGroups groups;
  EXPECT_EQ(groups.Factor(3), 1);
  const std::array<std::uint32_t, 4> three = {0, 1, 0, 2};
  groups.Set(three);
  groups.Start(2);
  groups.Add(0, 0, 0.9, 0.2);
  groups.Learn(10, Whole);
  EXPECT_EQ(groups.common(), 10);
  for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(groups.Factor(j), 1);  // the last one has none
  groups.Start(2);
  groups.Add(0, 0, 0.5, 0.2);
  groups.Add(1, 2, 0.5, 0.1);
  groups.Add(1, 1, 1, 0.9);
  groups.Learn(10, [](std::size_t k) { return k == 0 ? 1 : 2.0; });
  // Distances of the second model count twice: 0.4 and 1.8 of a direction, 1.1 on average.
  EXPECT_NEAR(groups.Factor(0), 2 / (0.4 / 1.1 + 1), 1e-12);
  EXPECT_EQ(groups.Factor(2), groups.Factor(0));
  EXPECT_NEAR(groups.Factor(1), 2 / (1.8 / 1.1 + 1), 1e-12);
  EXPECT_EQ(groups.Factor(3), 1);
  const double factor = groups.Factor(0);
  groups.Start(1);
  groups.Learn(7, Whole);
  EXPECT_EQ(groups.Factor(0), 1);
  groups.Undo();
  EXPECT_EQ(groups.common(), 10);
  EXPECT_EQ(groups.Factor(0), factor);
  const std::array<std::uint32_t, 5> more = {0, 1, 0, 2, 0};
  groups.Set(more);
  EXPECT_EQ(groups.Factor(4), factor);
  groups.Forget();
  EXPECT_EQ(groups.Factor(0), 1);
  EXPECT_EQ(groups.common(), 0);
}

TEST(ColumnGroupsTest, WhatWasSavedComesBack) {
  ColumnGroups groups;
  groups.Set(kGroups);
  groups.Start(1);
  groups.Add(0, 0, 1, 1);
  groups.Add(0, 7, 1, 3);
  groups.Learn(3, Whole);
  ByteWriter out;
  groups.Save(out);
  ColumnGroups same;
  ByteReader in(out.bytes());
  same.Load(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  ByteWriter again;
  same.Save(again);
  EXPECT_EQ(out.bytes(), again.bytes());
  // What is known of more features stays.
  ColumnGroups more;
  const std::array<std::uint32_t, 9> nine = {0, 0, 0, 0, 1, 1, 1, 1, 0};
  more.Set(nine);
  ByteReader once_more(out.bytes());
  more.Load(once_more);
  EXPECT_EQ(more.Factor(8), groups.Factor(0));
  EXPECT_NE(more.Factor(8), 1);
  // Bytes from before there were groups are left alone.
  ByteWriter older;
  older.U64(7);
  ByteReader from_before(older.bytes());
  more.Load(from_before);
  EXPECT_EQ(from_before.remaining(), 8U);
  EXPECT_EQ(more.Factor(8), 1);
}

TEST(ColumnGroupsTest, DamagedBytesAreRefused) {
  ColumnGroups groups;
  groups.Set(kGroups);
  ByteWriter out;
  groups.Save(out);
  for (std::size_t size = 9; size < out.bytes().size(); ++size) {
    ColumnGroups loaded;
    ByteReader in(std::string_view(out.bytes()).substr(0, size));
    loaded.Load(in);
    EXPECT_FALSE(in.ok()) << size;
    EXPECT_TRUE(loaded.empty());
  }
  std::string bytes = out.bytes();
  bytes[bytes.size() - 4] = 9;  // a group that is none
  ByteReader in(bytes);
  groups.Load(in);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(groups.Factor(0), 1);
}

}  // namespace
}  // namespace codband
