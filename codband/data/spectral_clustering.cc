#include "codband/data/spectral_clustering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codband/data/sparse_matrix.h"
#include "codband/data/top_eigenpairs.h"

namespace codband::data {
namespace {

// The adjacency matrix: symmetric, entries 1.
SparseMatrix Adjacency(const Graph& graph) {
  std::vector<SparseMatrix::Entry> entries;
  for (const auto& [a, b] : graph.edges) {
    if (a == b) continue;
    entries.push_back({.row = a, .column = b, .value = 1});
    entries.push_back({.row = b, .column = a, .value = 1});
  }
  SparseMatrix matrix = SparseMatrix::FromEntries(graph.nodes, graph.nodes, std::move(entries));
  std::ranges::fill(matrix.value, 1.0);
  return matrix;
}

void NormaliseRows(std::vector<double>& rows, std::size_t dim) {
  for (std::size_t begin = 0; begin < rows.size(); begin += dim) {
    double squares = 0;
    for (std::size_t i = 0; i < dim; ++i) squares += rows[begin + i] * rows[begin + i];
    if (!(squares > 0)) continue;
    for (std::size_t i = 0; i < dim; ++i) rows[begin + i] /= std::sqrt(squares);
  }
}

}  // namespace

std::vector<std::uint32_t> LargestComponent(const Graph& graph) {
  std::vector<std::uint32_t> root(graph.nodes);
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::uint32_t node) {
    while (root[node] != node) node = root[node] = root[root[node]];
    return node;
  };
  for (const auto& [a, b] : graph.edges) {
    const std::uint32_t ra = find(a);
    const std::uint32_t rb = find(b);
    root[std::max(ra, rb)] = std::min(ra, rb);
  }
  std::vector<std::size_t> size(graph.nodes);
  for (std::uint32_t node = 0; node < graph.nodes; ++node) ++size[find(node)];
  const auto largest = static_cast<std::uint32_t>(std::ranges::max_element(size) - size.begin());
  std::vector<std::uint32_t> members;
  for (std::uint32_t node = 0; node < graph.nodes; ++node) {
    if (find(node) == largest) members.push_back(node);
  }
  return members;
}

Result<Clusters> SpectralClusters(const Graph& graph, const SpectralOptions& options) {
  if (graph.nodes < options.clusters) {
    return Status::InvalidArgument(fmt::format(
        "{} groups of {} users, expected at least as many users", options.clusters, graph.nodes));
  }
  const SparseMatrix adjacency = Adjacency(graph);
  const double tau = options.regularisation * static_cast<double>(adjacency.value.size()) /
                     static_cast<double>(graph.nodes);
  std::vector<double> scale(graph.nodes);
  for (std::size_t i = 0; i < graph.nodes; ++i) {
    const double degree = static_cast<double>(adjacency.columns_of(i).size()) + tau;
    scale[i] = degree > 0 ? 1 / std::sqrt(degree) : 0;
  }
  std::vector<double> scaled(graph.nodes);
  const auto multiply = [&](std::span<const double> x, std::span<double> y) {
    for (std::size_t i = 0; i < x.size(); ++i) scaled[i] = scale[i] * x[i];
    adjacency.Multiply(scaled, y);
    const double everywhere =
        tau / static_cast<double>(graph.nodes) * std::accumulate(scaled.begin(), scaled.end(), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = scale[i] * (y[i] + everywhere);
  };
  // The largest eigenvalues of the normalised adjacency are the smallest of the Laplacian.
  const auto pairs = TopEigenpairs(graph.nodes, options.clusters, multiply);
  if (!pairs.ok()) return pairs.status();
  std::vector<double> rows(graph.nodes * options.clusters);
  for (std::size_t k = 0; k < options.clusters; ++k) {
    for (std::size_t i = 0; i < graph.nodes; ++i) {
      rows[i * options.clusters + k] = pairs.value().vector(k)[i];
    }
  }
  if (options.normalise_rows) NormaliseRows(rows, options.clusters);
  KMeansOptions kmeans = options.kmeans;
  kmeans.clusters = options.clusters;
  return KMeans(rows, options.clusters, kmeans);
}

}  // namespace codband::data
