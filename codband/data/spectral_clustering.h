#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/kmeans.h"

namespace codband::data {

// An undirected graph; each edge is given once or in both directions, loops are ignored.
struct Graph {
  std::size_t nodes = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

// The nodes of the largest connected component, ascending; ties are broken by the first node.
std::vector<std::uint32_t> LargestComponent(const Graph& graph);

struct SpectralOptions {
  std::size_t clusters = 10;
  // τ, as a multiple of the mean degree. Without it (0) a social network falls into one giant
  // cluster and a few dangling chains.
  double regularisation = 1;
  bool normalise_rows = true;  // rows of the embedding to norm 1 (Ng, Jordan & Weiss 2002)
  KMeansOptions kmeans = {};   // its `clusters` is not used
};

// Regularised spectral clustering (Amini et al. 2013): A_τ = A + τ/n 11ᵀ adds a weak edge between
// all nodes; its degrees are D_τ = D + τ. The embedding has one row per node: the eigenvectors of
// the smallest eigenvalues of the normalised Laplacian I − D_τ^(−1/2) A_τ D_τ^(−1/2), as many as
// clusters; k-means clusters it. A_τ is never formed explicitly. Deterministic given the seed.
// kInvalidArgument if there are fewer nodes than clusters.
Result<Clusters> SpectralClusters(const Graph& graph, const SpectralOptions& options);

}  // namespace codband::data
