#pragma once

#include <memory>

#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// dlinucb: each user has a set of LinUCB models, called slaves in the paper and in the code: one
// for each preference that they may have at the moment. A master counts how often each is badly
// wrong. An observation is bad for a model if its residual exceeds what estimation error and noise
// explain,
//   e = 1{ |xᵀθ̂ - r| > α sqrt(xᵀA⁻¹x) + ε },   ε = √2 σ erf⁻¹(1 - δ);
// a model learns only from observations that are not bad for it. After each observation
//   the model with the smallest ê - sqrt(ln τ) B chooses, by its upper confidence bound;
//   a model is discarded at ê > δ1 + B;
//   a new model is made when none is admissible, ê ≤ δ0 + B. That is a detected change.
//
// Paper: Wu, Iyer & Wang, "Learning contextual bandits in a non-stationary environment", SIGIR
// 2018, Algorithm 1. Its ε̃1, anything from 0 to δ1, is our δ0. With δ0 = δ1, the default, a model
// is either admissible or discarded, so that a user has one at a time: nearest to the published
// results. With δ0 < δ1 a model in doubt stays beside its successor and may come back; changes are
// detected a few observations earlier.
// Where we differ and why:
// - A set of models for each user. The paper has one sequence of visits; our users change
//   independently of each other.
// - α is a constant, as in the paper's experiments and those of CoDBand, instead of the confidence
//   radius.
// - A model without flags has n = 1 in B, so that the first visit needs no rule of its own.
// - At most `slaves` models. Where δ0 < δ1, a share of bad observations between the two leaves a
//   model neither admissible nor discarded for good, and new ones would be made without end. The
//   model with the largest ê gives way to the new one.
// - A late reward updates the models that existed when its arm was chosen: a model made since then
//   was made because that time was over. If none of them is left, the reward is ignored.
// Symbols: A, θ̂ as in linucb.h; e, the badness flag of an observation; ê, the mean of the last n ≤
// τ flags of a model; B = sqrt(ln(1/δ2) / (2n)), its confidence radius; σ, the noise. Parameters:
// alpha ≥ 0 (0.6); lambda > 0 (0.1), the ridge; sigma > 0 (the noise if known, else 0.1); delta in
// (0, 1] (0.1), the share of noise beyond ε; epsilon ≥ 0 (0: from sigma and delta), ε itself; tau ≥
// 1 (20), the flags kept; slaves ≥ 1 (10); delta0, delta1 in [0, 1], delta2 in (0, 1] (0.1 each).
// Cost: O(n d² + M) to choose among n arms with M models of the user, O(M d²) to learn. Allocates
// only for a new model.
// Persisted: each user's models (sufficient statistics, Cholesky factor, flags) and number of
// changes.
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
