#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codband/base/random.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// The Dirichlet process prior over models, as a Chinese restaurant process: a period is on model k
// with weight n_k, on a new one with weight α0 (the paper's Eq. 3).

// Draws the index of a model, or none for a new one. O(K), no allocation.
std::optional<std::size_t> DrawFromCrp(const ModelPool& pool, double concentration,
                                       RandomStream& random);

// Adds the log prior weights to out, which has a place for each model and a last one for a new
// model. The user's own period, on model `own`, does not count.
void AddCrpLogWeights(const ModelPool& pool, double concentration, std::size_t own,
                      std::span<double> out);

// Draws α0 anew given that `periods` periods are on `models` models, with the prior
// α0 ~ Gamma(a, rate b): Escobar & West (1995), §6. Preconditions: models > 0, periods > 0.
double ResampleConcentration(double concentration, std::uint64_t models, std::uint64_t periods,
                             double a, double b, RandomStream& random);

}  // namespace codband
