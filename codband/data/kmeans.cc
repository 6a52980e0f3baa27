#include "codband/data/kmeans.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "codband/base/check.h"
#include "codband/base/random.h"

namespace codband::data {
namespace {

constexpr std::uint64_t kStartPurpose = 3001;

double SquaredDistance(std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

// One initialisation and its iterations.
class Attempt {
 public:
  Attempt(std::span<const double> points, std::size_t dim, const KMeansOptions& options,
          std::size_t number)
      : points_(points),
        dim_(dim),
        count_(points.size() / dim),
        options_(options),
        random_({.seed = options.seed, .event = number}, kStartPurpose),
        distance_(count_) {
    result_.label.assign(count_, 0);
  }

  // False if there are fewer distinct points than clusters.
  bool Run() {
    if (!Start()) return false;
    Assign();
    for (std::size_t i = 0; i < options_.max_iterations; ++i) {
      MoveCentres();
      if (!Assign()) break;
    }
    result_.squares = std::accumulate(distance_.begin(), distance_.end(), 0.0);
    return true;
  }

  Clusters Take() { return std::move(result_); }
  double squares() const { return result_.squares; }

 private:
  std::span<const double> point(std::size_t i) const { return points_.subspan(i * dim_, dim_); }
  std::span<double> centre(std::size_t k) {
    return std::span(result_.centres).subspan(k * dim_, dim_);
  }
  void AddCentre(std::size_t i) {
    result_.centres.insert(result_.centres.end(), point(i).begin(), point(i).end());
  }

  // k-means++: each further centre is a point, with probability ∝ its squared distance from the
  // nearest centre so far.
  bool Start() {
    AddCentre(random_.Below(count_));
    std::ranges::fill(distance_, std::numeric_limits<double>::infinity());
    for (std::size_t k = 1; k < options_.clusters; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < count_; ++i) {
        distance_[i] = std::min(distance_[i], SquaredDistance(point(i), centre(k - 1)));
        sum += distance_[i];
      }
      if (!(sum > 0)) return false;
      AddCentre(random_.Categorical(distance_));
    }
    return true;
  }

  // Whether an assignment changed.
  bool Assign() {
    bool moved = false;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::uint32_t nearest = NearestCentre(point(i), result_.centres);
      moved = moved || nearest != result_.label[i];
      result_.label[i] = nearest;
      distance_[i] = SquaredDistance(point(i), centre(nearest));
    }
    return moved;
  }

  void MoveCentres() {
    std::vector<std::size_t> sizes(options_.clusters);
    std::ranges::fill(result_.centres, 0.0);
    for (std::size_t i = 0; i < count_; ++i) {
      ++sizes[result_.label[i]];
      const std::span<double> sum = centre(result_.label[i]);
      for (std::size_t j = 0; j < dim_; ++j) sum[j] += point(i)[j];
    }
    for (std::size_t k = 0; k < options_.clusters; ++k) {
      if (sizes[k] > 0) {
        for (double& value : centre(k)) value /= static_cast<double>(sizes[k]);
        continue;
      }
      const auto farthest = std::ranges::max_element(distance_);
      const std::span<const double> there =
          point(static_cast<std::size_t>(farthest - distance_.begin()));
      std::ranges::copy(there, centre(k).begin());
      *farthest = 0;
    }
  }

  std::span<const double> points_;
  std::size_t dim_;
  std::size_t count_;
  const KMeansOptions& options_;
  RandomStream random_;
  std::vector<double> distance_;  // squared, from each point to its centre
  Clusters result_;
};

// Numbers the clusters by size; ties are broken by the first point.
void SortBySize(std::size_t dim, std::size_t clusters, Clusters& result) {
  std::vector<std::size_t> sizes(clusters);
  std::vector<std::size_t> first(clusters, result.label.size());
  for (std::size_t i = 0; i < result.label.size(); ++i) {
    ++sizes[result.label[i]];
    first[result.label[i]] = std::min(first[result.label[i]], i);
  }
  std::vector<std::uint32_t> order(clusters);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : first[a] < first[b];
  });
  std::vector<std::uint32_t> rank(clusters);
  std::vector<double> centres;
  for (std::uint32_t k = 0; k < clusters; ++k) {
    rank[order[k]] = k;
    const auto begin = result.centres.begin() + static_cast<std::ptrdiff_t>(order[k] * dim);
    centres.insert(centres.end(), begin, begin + static_cast<std::ptrdiff_t>(dim));
    result.sizes.push_back(sizes[order[k]]);
  }
  for (std::uint32_t& label : result.label) label = rank[label];
  result.centres = std::move(centres);
}

}  // namespace

std::uint32_t NearestCentre(std::span<const double> point, std::span<const double> centres) {
  std::uint32_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k * point.size() < centres.size(); ++k) {
    const double distance = SquaredDistance(point, centres.subspan(k * point.size(), point.size()));
    if (distance < least) {
      least = distance;
      nearest = static_cast<std::uint32_t>(k);
    }
  }
  return nearest;
}

Result<Clusters> KMeans(std::span<const double> points, std::size_t dim,
                        const KMeansOptions& options) {
  CODBAND_CHECK(dim > 0 && points.size() % dim == 0);
  CODBAND_CHECK(options.clusters > 0 && options.restarts > 0);
  const std::size_t count = points.size() / dim;
  const Status too_few = Status::InvalidArgument(
      fmt::format("{} clusters of {} points, expected at least as many distinct points",
                  options.clusters, count));
  if (count < options.clusters) return too_few;
  std::optional<Attempt> best;
  for (std::size_t i = 0; i < options.restarts; ++i) {
    Attempt attempt(points, dim, options, i);
    if (!attempt.Run()) return too_few;
    if (!best || attempt.squares() < best->squares()) best.emplace(std::move(attempt));
  }
  Clusters result = best->Take();
  SortBySize(dim, options.clusters, result);
  return result;
}

}  // namespace codband::data
