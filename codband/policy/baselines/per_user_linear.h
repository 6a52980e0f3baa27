#pragma once

#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/baselines/baseline_items.h"
#include "codband/policy/policy.h"
#include "codband/policy/user_table.h"

namespace codband {

// Base class of policies with one Bayesian linear regression for each user. A subclass adds
// DoChoose alone. A user without observations has the prior. The model id of a decision is the
// user's id. Persisted: each user's posterior, and the effects of items if there are any.
class PerUserLinear : public Policy {
 public:
  bool Forget(UserId user) final {
    items_.Forget(user);
    return users_.Erase(user);
  }
  bool ForgetItem(ItemId item) final { return items_.ForgetItem(item); }
  std::optional<ItemDescription> DescribeItem(ItemId item) const final {
    return items_.Describe(item);
  }
  std::size_t model_count() const final { return users_.size(); }
  void DoSaveState(ByteWriter& out) const final {
    users_.Save(out);
    items_.Save(out);
  }
  void DoLoadState(ByteReader& in) final;

 protected:
  PerUserLinear(std::size_t dim, double prior_precision, double noise_variance, bool items = false)
      : Policy(dim), prior_(dim, prior_precision, noise_variance), items_(items) {}

  const linalg::GaussianPosterior& PosteriorOf(UserId user) const;
  const BaselineItems& items() const { return items_; }

 private:
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) final;
  void DoGrow(std::size_t dim) final;

  linalg::GaussianPosterior prior_;
  UserTable<linalg::GaussianPosterior> users_;
  BaselineItems items_;
};

}  // namespace codband
