#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// club: a graph over the users whose connected components are the clusters. At first every two
// users are joined by an edge. The edge is cut for good as soon as their own estimates are further
// apart than chance explains,
//   ‖θ̂_i - θ̂_j‖ > CB(T_i) + CB(T_j),   CB(T) = α2 sqrt((1 + ln(1 + T)) / (1 + T)).
// A user is served by LinUCB (linucb.h) on all observations of their component. Assumes that users
// never change.
//
// Paper: Gentile, Li & Zappella, "Online clustering of bandits", ICML 2014, Figure 1.
// Where we differ and why:
// - Users need not be known in advance. The graph is complete over the users with an observation; a
//   new user is joined to all of them. As in the paper, where all users exist from the start, this
//   makes one component of everybody until the newcomer's edges are cut, some ten observations
//   later. Before their first observation, a user is served by the model of all data and belongs to
//   no component.
// - Bounded work: an observation tests at most `checks` edges of its user, round robin. A user with
//   no more neighbours than that has all edges tested: exactly the paper's rule.
// - The exploration bonus has no factor sqrt(ln(1 + t)), as in the experiments of CoDBand.
// - No sparse random start graph: it would need the number of users.
// - A late reward counts for the user's component at the time it arrives.
// - Forget is exact: the edges among the others never depended on the user, and those whom the user
//   held together fall apart. (Where a user has more than `checks` neighbours, the edges tested
//   next may differ.)
// Symbols: T_i, the observations of user i; θ̂_i, their ridge estimate; CB, the confidence bound of
// an estimate.
// Parameters: alpha ≥ 0 (0.3; 0.1 for setting 1), the width of the confidence bound; lambda > 0
// (0.1), the ridge; alpha2 ≥ 0 (1; 2 for setting 1), how far apart estimates may be; checks ≥ 1
// (1000).
// Cost, for N users: O(n d²) to choose among n arms; O(d² + checks · d) to learn. Cutting an edge
// costs O(N/64) as long as its ends have a common neighbour, else a bidirectional search that stops
// where both sides meet or when the smaller side is exhausted: O(min(side) · N/64). Splitting a
// component costs O(d²) for each user of that side, and O(d³). Forgetting costs O(N d²). Allocates
// for new users, and where edges are cut and components split. Memory beside the models: one bit
// for each two users, N²/8 bytes at most, only as far as edges are cut (12 MB for 10,000 users, 1.2
// GB for 100,000). Persisted: the sufficient statistics and Cholesky factor of each user, of each
// component and of all data; the cuts.
struct ClubOptions {
  double alpha = 0.3;
  double lambda = 0.1;
  double alpha2 = 1;
  std::size_t checks = 1000;
};

PolicyInfo ClubInfo();
std::unique_ptr<Policy> MakeClub(std::size_t dim, const ClubOptions& options);
std::unique_ptr<Policy> MakeClub(const ParamValues& params, const PolicyContext& context);

// sqrt((1 + ln(1 + T)) / (1 + T)): how uncertain an estimate from T observations is.
double EstimateSpread(std::uint64_t observations);

}  // namespace codband
