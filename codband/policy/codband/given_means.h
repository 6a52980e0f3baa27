#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "codband/linalg/joint_likelihood.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// E[θ | z = k, D] of a user with the period D, for models k that have not learned from D. The mean
// over all models is Σ p(k | D) E[θ | z = k, D]: what the user has told counts on whichever model
// they are. Owns the memory that it works in. Not thread-safe.
class GivenMeans {
 public:
  void Clear() { models_.clear(); }

  // For all models that matter but the user's own, `own`, which has learned from `data`; the last
  // chance is that of a new one. A factorisation for each of them, O(d³).
  void Find(const ModelPool& pool, const linalg::SufficientStats& data, std::size_t own,
            std::span<const double> chances);

  // Empty where the model alone says it.
  std::span<const double> Of(std::size_t k) const;

 private:
  std::vector<std::size_t> models_;  // indices, rising
  std::vector<double> rows_;         // a mean of each
  std::size_t dim_ = 0;
  std::unique_ptr<linalg::JointLikelihood> joint_;
  std::vector<linalg::JointLikelihood::Model> queries_;
};

}  // namespace codband
