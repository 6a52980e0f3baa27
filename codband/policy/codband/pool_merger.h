#pragma once

#include <span>
#include <vector>

#include "codband/policy/codband/codband_options.h"
#include "codband/policy/codband/pool_register.h"

namespace codband {

// Adds up the registers of partitions to a pool (shared_pool.h), always from scratch and in the
// order of partitions.
//
// Two partitions may come to the same taste, each by a model of its own. Two models are joined, the
// one with the larger id into the other, if the evidence for one parameter exceeds that for two:
//   ln Z(a+b) - ln Z(a) - ln Z(b) + ln Γ(n_a+n_b) - ln Γ(n_a) - ln Γ(n_b) - ln α0 > 0,
// Z the marginal likelihood of a model's observations, tempered as that of users' clicks is
// (reward_noise.h), and n its periods: the Dirichlet process as one restaurant. Best pairs first.
// α0 is the mean of the partitions'. The observations must say so by themselves too, Z(a+b) exceed
// Z(a) Z(b) by some nats: while little is known the process alone would join everything, and what
// was joined by mistake parts again one user at a time.
//
// The prior is learned from the models of all partitions by one step of PriorLearner from that of
// the last pool; anew from the sums alone in the first pool, and in one from which a user was
// erased, so that nothing is left of them.
//
// O(K² d³) for K models. `registers` are of different partitions, in order, with as many features.
std::vector<PoolImport> MergePool(const CoDBandOptions& options,
                                  std::span<const PoolRegister> registers,
                                  const PoolImport* previous);

// The pool for each of the partitions: with the sums of the others' registers.
std::vector<PoolImport> GiveOut(const PoolImport& pool, std::span<const PoolRegister> registers);

}  // namespace codband
