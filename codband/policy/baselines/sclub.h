#pragma once

#include <memory>
#include <numbers>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// sclub: the users are partitioned into clusters, plain sets, which split and merge. Each cluster
// is served by LinUCB (linucb.h) on all observations of its members. Time runs in phases of 2, 4,
// 8, … observations. After an observation of user i in cluster j:
//   Split: i leaves for a cluster of their own if their estimate is far from that of the cluster at
//     the start of the phase, ‖θ̂_i - θ̃_j‖ > α_θ (F(T_i) + F(T̃_j)), or if a member k is served at
//     another frequency, |T_i - T_k| / t > 2 α_p F(t).
//   Merge: two clusters all of whose members were served in this phase ("checked") become one if
//     ‖θ̂_j - θ̂_k‖ < ½ α_θ (F(T_j) + F(T_k)) and their mean frequencies, T_j / (|j| t), differ by
//     less than α_p F(t). The one with the smaller number absorbs the other.
// Assumes that users never change.
//
// Paper: Li, Chen, Li & Leung, "Improved algorithm on online clustering of bandits", IJCAI 2019,
// Algorithms 1 to 4.
// Where we differ and why:
// - Users need not be known in advance. Everybody is in the first cluster until split from it;
// users
//   without an observation neither keep it from being checked nor have a frequency.
// - Merging is tried for the cluster of the user just served, with at most `checks` others round
//   robin, not for all pairs: the estimates of other pairs did not change. (Their frequencies
//   converge as t grows; such a pair merges when one of the two is served next.) Of several
//   candidates, the smallest number is merged first.
// - A merged cluster's estimate at the start of the phase is that at the merger: the paper leaves
// it
//   open.
// - A user alone in a cluster is not split off.
// - The exploration bonus is α sqrt(xᵀA⁻¹x) with a constant α.
// - A late reward counts for the user's cluster at the time it arrives.
// - Forget removes the user's data from all sums, estimates and frequencies. Splits and mergers
// that
//   the user took part in stay.
// Symbols: t, the observations of all users; T_i, T_j, those of a user and of a cluster; θ̂, a ridge
// estimate; θ̃_j, T̃_j, estimate and observations of cluster j at the start of the phase;
// F(T) = sqrt((1 + ln(1 + T)) / (1 + T)).
// Parameters: alpha ≥ 0 (0.3), the width of the confidence bound; lambda > 0 (0.1), the ridge;
// alpha_theta ≥ 0 (1) and alpha_p ≥ 0 (√2), how far apart estimates and frequencies may be;
// checks ≥ 1 (1000).
// Cost: O(n d²) to choose among n arms; O(d² + log N + min(K, checks) · d) to learn for N users in
// K clusters, where most comparisons end after a few features. A split or a merger costs O(d³), and
// O(log N) for each user moved, those of the smaller cluster. The start of a phase costs O(K d).
// Allocates for new users, and for more clusters than there ever were.
// Persisted: the sufficient statistics and Cholesky factor of each user and each cluster; each
// cluster's members and its state in the phase.
struct SClubOptions {
  double alpha = 0.3;
  double lambda = 0.1;
  double alpha_theta = 1;
  double alpha_p = std::numbers::sqrt2;
  std::size_t checks = 1000;
};

PolicyInfo SClubInfo();
std::unique_ptr<Policy> MakeSClub(std::size_t dim, const SClubOptions& options);
std::unique_ptr<Policy> MakeSClub(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
