#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// dlinucb: for each user a set of LinUCB models ("slaves"), one for each preference that the user
// may have at the moment, watched by a master that counts how often each is badly wrong. An
// observation is bad for a slave if the reward is further from its prediction than its estimation
// error and the noise explain,
//   e = 1{ |xᵀθ̂ - r| > α sqrt(xᵀA⁻¹x) + ε },   ε = √2 σ erf⁻¹(1 - δ);
// a slave learns only from observations that are not bad for it. With ê the mean of the last
// n ≤ τ flags of a slave and B = sqrt(ln(1/δ2) / (2n)):
//   the slave with the smallest ê - sqrt(ln τ) B chooses, by its upper confidence bound;
//   a slave is discarded at ê > δ1 + B;
//   a new slave is made when none is admissible, ê ≤ δ0 + B. The user has then changed.
//
// Paper: Wu, Iyer & Wang, "Learning contextual bandits in a non-stationary environment", SIGIR
// 2018, Algorithm 1. Its ε̃1, anything from 0 to δ1, is our δ0. With δ0 = δ1, the default, a slave
// is either admissible or discarded, so that a user has one at a time: nearest to the published
// results. With δ0 < δ1 one in doubt stays beside its successor and may come back; changes are
// noticed a few observations earlier.
// Where we differ and why:
// - A set of slaves for each user: the paper has one sequence of visits, the users here change
//   independently of each other.
// - α is a constant, as in the paper's experiments and those of CoDBand, instead of the
//   confidence radius.
// - A slave without flags has n = 1 in B, so that the first visit needs no rule of its own.
// - At most `slaves` slaves: where δ0 < δ1, some share of bad observations between them leaves a
//   slave neither admissible nor discarded for good, and one more would be made again and again.
//   The slave with the largest ê gives way to the new one.
// - A reward that arrives late is shown to those slaves that were there when its arm was chosen: a
//   slave made since then was made because that time was over. If there is none left it teaches
//   nothing.
//
// Parameters: alpha ≥ 0 (0.6); lambda > 0 (0.1), the ridge; sigma > 0 (the noise if known); delta
// (0.1), the share of noise that ε leaves out; epsilon ≥ 0 (0: from sigma and delta), ε itself;
// tau ≥ 1 (20), flags remembered; slaves ≥ 1 (10); delta0, delta1, delta2, each at most 1 (0.1).
// Cost: O(n d² + M) to choose among n arms with M slaves of the user, O(M d²) to learn. Allocates
// only for a new slave.
// Persisted: each user's slaves (sums, Cholesky factor, flags) and number of changes.
struct DLinUcbOptions {
  double alpha = 0.6;
  double lambda = 0.1;
  double sigma = 0.1;
  double delta = 0.1;
  double epsilon = 0;  // 0: from sigma and delta
  std::size_t tau = 20;
  std::size_t slaves = 10;
  double delta0 = 0.1;
  double delta1 = 0.1;
  double delta2 = 0.1;
};

PolicyInfo DLinUcbInfo();
std::unique_ptr<Policy> MakeDLinUcb(std::size_t dim, const DLinUcbOptions& options);
std::unique_ptr<Policy> MakeDLinUcb(const ParamValues& params, const PolicyContext& context);

}  // namespace codband
