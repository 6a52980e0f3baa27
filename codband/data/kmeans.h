#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/status.h"

namespace codband::data {

struct KMeansOptions {
  std::size_t clusters = 8;
  std::size_t restarts = 10;  // independent runs; the best one is kept
  std::size_t max_iterations = 300;
  std::uint64_t seed = 1;
};

struct Clusters {
  std::vector<std::uint32_t> label;  // of every point
  std::vector<double> centres;       // clusters × dim, row-major
  std::vector<std::size_t> sizes;    // largest first: clusters are numbered by their size
  double squares = 0;                // sum of squared distances of the points from their centres
};

// k-means: initialised by k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's iterations until no
// assignment changes. An empty cluster is reseeded with the point farthest from its centre. Points
// are row-major. Deterministic: a function of points and options. kInvalidArgument if there are
// fewer distinct points than clusters, or none of either.
Result<Clusters> KMeans(std::span<const double> points, std::size_t dim,
                        const KMeansOptions& options);

// The index of the nearest centre; the first of several.
std::uint32_t NearestCentre(std::span<const double> point, std::span<const double> centres);

}  // namespace codband::data
