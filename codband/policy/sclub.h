#pragma once

#include <memory>
#include <numbers>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// sclub: the users are divided into clusters, plain sets, which split and merge. Each cluster is
// served by LinUCB (linucb.h) on all observations of its members. Time runs in phases of 2, 4, 8, …
// observations. With F(T) = sqrt((1 + ln(1 + T)) / (1 + T)), after an observation of user i in
// cluster j, t observations so far:
//   Split: i leaves for a cluster of its own if its estimate is far from that of the cluster at
//     the start of the phase, ‖θ̂_i - θ̃_j‖ > α_θ (F(T_i) + F(T̃_j)), or if a member is served
//     at another frequency, |T_i - T_k| / t > 2 α_p F(t) for some k in j.
//   Merge: two clusters all of whose members were served in this phase ("checked") become one if
//     ‖θ̂_j - θ̂_k‖ < ½ α_θ (F(T_j) + F(T_k)) and their mean frequencies, T_j / (|j| t), differ by
//     less than α_p F(t). The one with the smaller number absorbs the other.
// Assumes that users never change.
//
// Paper: Li, Chen, Li & Leung, "Improved algorithm on online clustering of bandits", IJCAI 2019,
// Algorithms 1 to 4.
// Where we differ and why:
// - Users need not be known beforehand: everybody is in the first cluster until split from it, but
//   those without an observation neither keep it from being checked nor have a frequency.
// - Merging is tried for the cluster of the user just served, with the others in turn, `checks` of
//   them at most, not for all pairs: the estimates of other pairs did not change. (Their
//   frequencies come closer with t; such a pair merges when one of the two is served next.) Of
//   several that fit, the smallest number is taken first.
// - A merged cluster's estimate at the start of the phase is that at the merger: the paper leaves
//   it open.
// - A user alone is not split off.
// - The exploration bonus is α sqrt(xᵀA⁻¹x) with a constant α.
// A late reward counts for the user's cluster at the time it arrives.
//
// Parameters: alpha ≥ 0 (0.3); lambda > 0 (0.1), the ridge; alpha_theta ≥ 0 (1); alpha_p ≥ 0 (√2);
// checks ≥ 1 (1000).
// Cost: O(n d²) to choose among n arms; to learn O(d² + log N + min(K, checks) · d) for N users in
// K clusters, where most comparisons end after a few features. A split or merger O(d³), and for
// each user moved, those of the smaller cluster, O(log N). The start of a phase O(K d). Allocates
// for new users, and for more clusters than there ever were.
// Forget: the user's data leaves all sums, estimates and frequencies. Splits and mergers that the
// user took part in stay.
// Persisted: each user's and each cluster's sums and Cholesky factor, each cluster's members and
// its state in the phase.
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
