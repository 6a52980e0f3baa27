#include "codband/data/kmeans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "codband/base/random.h"
#include "codband/data/spectral_clustering.h"

namespace codband::data {
namespace {

TEST(KMeansTest, FindsTheBestPartitionOfFewPoints) {
  // 0 1 | 10 11 12 | 100: the best of all 90 partitions in three, by hand.
  const std::vector<double> points = {100, 0, 10, 11, 1, 12};
  const auto clusters = KMeans(points, 1, {.clusters = 3});
  ASSERT_TRUE(clusters.ok());
  EXPECT_EQ(clusters.value().label, (std::vector<std::uint32_t>{2, 1, 0, 0, 1, 0}));
  EXPECT_EQ(clusters.value().sizes, (std::vector<std::size_t>{3, 2, 1}));
  EXPECT_EQ(clusters.value().centres, (std::vector<double>{11, 0.5, 100}));
  EXPECT_DOUBLE_EQ(clusters.value().squares, 2.5);
}

TEST(KMeansTest, EqualsExhaustiveSearchOnRandomPoints) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random({.seed = seed, .event = 0}, 1);
    std::vector<double> points(2 * 9);
    random.FillNormal(points);
    double best = 1e300;
    for (int mask = 1; mask < (1 << 9) - 1; ++mask) {  // all partitions in two
      double total = 0;
      for (const int side : {0, 1}) {
        double sums[4] = {};  // count, x, y, squares
        for (std::size_t i = 0; i < 9; ++i) {
          if (((mask >> i) & 1) != side) continue;
          sums[0] += 1;
          sums[1] += points[2 * i];
          sums[2] += points[2 * i + 1];
          sums[3] += points[2 * i] * points[2 * i] + points[2 * i + 1] * points[2 * i + 1];
        }
        total += sums[3] - (sums[1] * sums[1] + sums[2] * sums[2]) / sums[0];
      }
      best = std::min(best, total);
    }
    const auto clusters = KMeans(points, 2, {.clusters = 2, .restarts = 40});
    EXPECT_NEAR(clusters.value().squares, best, 1e-9) << seed;
  }
}

TEST(KMeansTest, IsAFunctionOfTheSeed) {
  RandomStream random({.seed = 1, .event = 0}, 1);
  std::vector<double> points(3 * 500);
  random.FillNormal(points);
  const auto run = [&](std::uint64_t seed) {
    return KMeans(points, 3, {.clusters = 7, .restarts = 1, .seed = seed}).value();
  };
  EXPECT_EQ(run(1).label, run(1).label);
  EXPECT_EQ(run(1).centres, run(1).centres);
  EXPECT_NE(run(1).label, run(2).label);
}

TEST(KMeansTest, TooFewDistinctPointsAreRefused) {
  const std::vector<double> points = {1, 1, 1, 2};
  EXPECT_TRUE(KMeans(points, 1, {.clusters = 2}).ok());
  EXPECT_EQ(KMeans(points, 1, {.clusters = 3}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(KMeans(points, 1, {.clusters = 5}).status().code(), StatusCode::kInvalidArgument);
}

TEST(KMeansTest, NearestCentreIsTheFirstOfEquals) {
  const std::vector<double> centres = {0, 4, 2, 4};
  EXPECT_EQ(NearestCentre(std::vector<double>{3}, centres), 1U);
  EXPECT_EQ(NearestCentre(std::vector<double>{0.5}, centres), 0U);
}

// Cliques of the given sizes, each joined with the next by one edge.
Graph ChainOfCliques(const std::vector<std::uint32_t>& sizes, bool joined = true) {
  Graph graph;
  for (const std::uint32_t size : sizes) {
    const auto first = static_cast<std::uint32_t>(graph.nodes);
    for (std::uint32_t a = 0; a < size; ++a) {
      for (std::uint32_t b = 0; b < a; ++b) graph.edges.emplace_back(first + a, first + b);
    }
    if (joined && first > 0) graph.edges.emplace_back(first - 1, first);
    graph.nodes += size;
  }
  return graph;
}

void ExpectCliquesFound(const std::vector<std::uint32_t>& sizes, SpectralOptions options) {
  options.clusters = sizes.size();
  const auto clusters = SpectralClusters(ChainOfCliques(sizes), options);
  ASSERT_TRUE(clusters.ok()) << clusters.status().message();
  std::size_t node = 0;
  std::set<std::uint32_t> labels;
  for (const std::uint32_t size : sizes) {
    for (std::uint32_t i = 0; i < size; ++i) {
      EXPECT_EQ(clusters.value().label[node + i], clusters.value().label[node]) << node + i;
    }
    labels.insert(clusters.value().label[node]);
    node += size;
  }
  EXPECT_EQ(labels.size(), sizes.size());
}

TEST(SpectralClusteringTest, FindsCliquesJoinedByAnEdge) {
  for (const bool normalise : {false, true}) {
    for (const double regularisation : {0.0, 1.0}) {
      const SpectralOptions options{.regularisation = regularisation, .normalise_rows = normalise};
      ExpectCliquesFound({6, 9, 7}, options);         // dense solver
      ExpectCliquesFound({40, 60, 50, 45}, options);  // Lanczos
    }
  }
}

// Two blocks with many edges between them, and chains hanging from one: without the weak edges the
// chains are cut off.
TEST(SpectralClusteringTest, RegularisationKeepsChainsFromBeingClusters) {
  Graph graph = ChainOfCliques({60, 60});
  for (std::uint32_t a = 0; a < 60; ++a) {
    for (std::uint32_t i = 0; i < 20; ++i) graph.edges.emplace_back(a, 60 + (a + i) % 60);
  }
  for (std::uint32_t chain = 0; chain < 4; ++chain) {
    std::uint32_t last = 20 + chain * 3;
    for (int i = 0; i < 8; ++i) {
      graph.edges.emplace_back(last, static_cast<std::uint32_t>(graph.nodes));
      last = static_cast<std::uint32_t>(graph.nodes++);
    }
  }
  const auto sizes = [&](double regularisation) {
    return SpectralClusters(
               graph, {.clusters = 2, .regularisation = regularisation, .normalise_rows = false})
        .value()
        .sizes;
  };
  EXPECT_LT(sizes(0)[1], 20U);
  EXPECT_GE(sizes(1)[1], 60U);
}

TEST(SpectralClusteringTest, DirectionsAndRepetitionsOfEdgesDoNotMatter) {
  Graph graph = ChainOfCliques({6, 9, 7});
  const auto once = SpectralClusters(graph, {.clusters = 3});
  for (std::size_t i = 0; i < 40; ++i) {
    graph.edges.emplace_back(graph.edges[i].second, graph.edges[i].first);
    graph.edges.push_back(graph.edges[i]);
  }
  graph.edges.emplace_back(2, 2);
  EXPECT_EQ(SpectralClusters(graph, {.clusters = 3}).value().label, once.value().label);
}

TEST(SpectralClusteringTest, LargestComponentHasItsMembersInOrder) {
  Graph graph = ChainOfCliques({3, 5, 2}, false);
  graph.nodes += 2;  // alone
  EXPECT_EQ(LargestComponent(graph), (std::vector<std::uint32_t>{3, 4, 5, 6, 7}));
}

TEST(SpectralClusteringTest, MoreGroupsThanUsersAreRefused) {
  EXPECT_EQ(SpectralClusters(ChainOfCliques({3}), {.clusters = 4}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace codband::data
