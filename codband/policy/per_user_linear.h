#pragma once

#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/policy.h"
#include "codband/policy/user_table.h"

namespace codband {

// What policies with one linear model for each user have in common: everything but the choice of
// an arm. A user without observations is served by the prior. The model id of a decision is the
// user's own id. Persisted: each user's posterior.
class PerUserLinear : public Policy {
 public:
  bool Forget(UserId user) final { return users_.Erase(user); }
  std::size_t model_count() const final { return users_.size(); }
  void SaveState(ByteWriter& out) const final { users_.Save(out); }
  void LoadState(ByteReader& in) final;

 protected:
  PerUserLinear(std::size_t dim, double prior_precision, double noise_variance)
      : Policy(dim), prior_(dim, prior_precision, noise_variance) {}

  const linalg::GaussianPosterior& PosteriorOf(UserId user) const;

 private:
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) final;

  linalg::GaussianPosterior prior_;
  UserTable<linalg::GaussianPosterior> users_;
};

}  // namespace codband
