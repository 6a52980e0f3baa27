#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/status.h"

namespace codband::data {

struct KMeansOptions {
  std::size_t clusters = 8;
  std::size_t restarts = 10;  // independent starts; the best one is taken
  std::size_t max_iterations = 300;
  std::uint64_t seed = 1;
};

struct Clusters {
  std::vector<std::uint32_t> label;  // of every point
  std::vector<double> centres;       // clusters × dim, row-major
  std::vector<std::size_t> sizes;    // largest first: clusters are numbered by their size
  double squares = 0;                // of the distances from the points to their centres
};

// k-means: starts by k-means++ (Arthur & Vassilvitskii 2007), Lloyd's iterations until no point
// moves. A cluster that loses all its points starts again from the point farthest from its centre.
// Points are row-major. A function of points and options: the same bits on every run.
// kInvalidArgument for fewer distinct points than clusters, or none of either.
Result<Clusters> KMeans(std::span<const double> points, std::size_t dim,
                        const KMeansOptions& options);

// The number of the nearest centre; of several, the first.
std::uint32_t NearestCentre(std::span<const double> point, std::span<const double> centres);

}  // namespace codband::data
