#include "codband/policy/baselines/linear_groups.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/baselines/baseline_items.h"
#include "codband/policy/baselines/contributions.h"
#include "codband/policy/baselines/linucb.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

class LinearGroups : public Policy {
 public:
  // Groups by the true parameter, or one for all if there is no truth.
  LinearGroups(std::size_t dim, double prior_precision, double noise_variance,
               const GroundTruth* truth, bool items = false)
      : Policy(dim), truth_(truth), prior_(dim, prior_precision, noise_variance), items_(items) {}

  bool Forget(UserId user) final {
    const Contributions* given = users_.Find(user);
    if (given == nullptr) return false;
    for (const Contributions::Entry& entry : given->entries()) {
      groups_[entry.model].Remove(entry.stats);
    }
    items_.Forget(user);
    return users_.Erase(user);
  }

  bool ForgetItem(ItemId item) final { return items_.ForgetItem(item); }
  std::optional<ItemDescription> DescribeItem(ItemId item) const final {
    return items_.Describe(item);
  }

  std::size_t model_count() const final { return groups_.size(); }

  void DoSaveState(ByteWriter& out) const final {
    out.U64(groups_.size());
    for (const linalg::GaussianPosterior& group : groups_) group.Save(out);
    users_.Save(out);
    items_.Save(out);
  }

  void DoLoadState(ByteReader& in) final {
    const std::size_t count =
        in.Count("number of groups", linalg::GaussianPosterior::SavedBytes(dim()));
    groups_.assign(count, prior_);
    for (linalg::GaussianPosterior& group : groups_) group.Load(in);
    users_.Load(in, [&] { return Contributions(dim()); });
    items_.Load(in);
    if (in.ok()) CheckLoadedState(in);
  }

 protected:
  const BaselineItems& items() const { return items_; }

 private:
  // The contributions of all users must add up to the observations of the groups.
  void CheckLoadedState(ByteReader& in) const {
    std::vector<std::uint64_t> given(groups_.size());
    users_.ForEach([&](UserId user, const Contributions& contributions) {
      for (const Contributions::Entry& entry : contributions.entries()) {
        if (entry.model >= groups_.size()) {
          in.Fail("contribution", fmt::format("of user {} is to group {} of {}", user, entry.model,
                                              groups_.size()));
          return;
        }
        given[entry.model] += entry.stats.m();
      }
    });
    for (std::size_t g = 0; g < groups_.size() && in.ok(); ++g) {
      if (given[g] == groups_[g].stats().m()) continue;
      in.Fail("group", fmt::format("{} has {} observations, its users {}", g,
                                   groups_[g].stats().m(), given[g]));
    }
  }

  // Chooses an arm, given the posterior of the user's group.
  virtual Propensity ChooseIn(const linalg::GaussianPosterior& group, ArmsView arms,
                              Decision& decision) const = 0;

  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const final {
    const std::size_t group = truth_ == nullptr ? 0 : truth_->model_of(user);
    decision.model = group;
    return ChooseIn(group < groups_.size() ? groups_[group] : prior_, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) final {
    const std::size_t limit = truth_ == nullptr ? 1 : truth_->model_count();
    if (decision.model >= limit) {
      throw std::invalid_argument(
          fmt::format("[LinearGroups::Learn] the decision's model is {}, expected less than {}",
                      decision.model, limit));
    }
    if (decision.model >= groups_.size()) groups_.resize(decision.model + 1, prior_);
    linalg::GaussianPosterior& group = groups_[decision.model];
    const double expected = linalg::Dot(decision.features, group.mean());
    const double left = items_.Learn(decision, expected, reward);
    group.Add(decision.features, left);
    users_.FindOrMake(decision.user, [&] { return Contributions(dim()); })
        .Add(decision.model, decision.features, left);
    return {};
  }

  void DoGrow(std::size_t dim) final {
    prior_.Grow(dim);
    for (linalg::GaussianPosterior& group : groups_) group.Grow(dim);
    users_.ForEach([&](UserId, Contributions& given) { given.Grow(dim); });
  }

  const GroundTruth* truth_;
  linalg::GaussianPosterior prior_;
  std::vector<linalg::GaussianPosterior> groups_;
  UserTable<Contributions> users_;
  BaselineItems items_;
};

class UniformLinUcb final : public LinearGroups {
 public:
  UniformLinUcb(std::size_t dim, LinUcbOptions options)
      : LinearGroups(dim, options.lambda, 1, nullptr, options.items), alpha_(options.alpha) {}

 private:
  Propensity ChooseIn(const linalg::GaussianPosterior& group, ArmsView arms,
                      Decision& decision) const override {
    return ChooseByUpperBound(group, alpha_, arms, decision,
                              items().ScoresOf(arms, ItemScratch::OfThisThread()));
  }

  double alpha_;
};

class OracleLinUcb final : public LinearGroups {
 public:
  OracleLinUcb(std::size_t dim, double lambda, double delta1, double sigma,
               const GroundTruth* truth)
      : LinearGroups(dim, lambda, 1, truth), lambda_(lambda), delta1_(delta1), sigma_(sigma) {}

 private:
  Propensity ChooseIn(const linalg::GaussianPosterior& group, ArmsView arms,
                      Decision& decision) const override {
    const auto d = static_cast<double>(dim());
    const auto n = static_cast<double>(group.stats().m());
    const double alpha =
        sigma_ * sigma_ * std::sqrt(d * std::log1p(n / (d * lambda_)) + 2 * std::log(1 / delta1_)) +
        std::sqrt(lambda_);
    return ChooseByUpperBound(group, alpha, arms, decision);
  }

  double lambda_;
  double delta1_;
  double sigma_;
};

class OracleGreedy final : public LinearGroups {
 public:
  OracleGreedy(std::size_t dim, double lambda, double sigma, const GroundTruth* truth)
      : LinearGroups(dim, lambda, sigma * sigma, truth) {}

 private:
  Propensity ChooseIn(const linalg::GaussianPosterior& group, ArmsView arms,
                      Decision& decision) const override {
    return ChooseByParameter(group, group.mean(), arms, decision);
  }
};

}  // namespace

PolicyInfo UniformLinUcbInfo() {
  return {.name = "uniform-linucb",
          .summary = "one linear model for everybody, upper confidence bound",
          .paper = "Li, Chu, Langford & Schapire, WWW 2010",
          .shares_between_users = true,
          .params = {AlphaParam(LinUcbOptions{}.alpha), LambdaParam(LinUcbOptions{}.lambda),
                     ItemsParam()}};
}

PolicyInfo OracleLinUcbInfo() {
  return {
      .name = "oracle-linucb",
      .summary = "yardstick: told who has which parameter; one LinUCB for each",
      .paper = "Li, Wu & Wang, SIGIR 2021, §4",
      .shares_between_users = true,
      .knows_truth = true,
      .params = {LambdaParam(0.1),
                 NumberParam("delta1", "probability that the confidence bound fails", 1e-9, 1, 0.1),
                 SigmaParam()}};
}

PolicyInfo OracleGreedyInfo() {
  ParamInfo lambda = LambdaParam(1);
  lambda.default_from = DefaultFrom::kDimension;
  return {.name = "oracle-greedy",
          .summary = "yardstick: told who has which parameter; no exploration",
          .paper = "ours",
          .shares_between_users = true,
          .knows_truth = true,
          .params = {lambda, SigmaParam()}};
}

std::unique_ptr<Policy> MakeUniformLinUcb(const ParamValues& params, const PolicyContext& context) {
  return std::make_unique<UniformLinUcb>(context.dim,
                                         LinUcbOptions{.alpha = params.Number("alpha"),
                                                       .lambda = params.Number("lambda"),
                                                       .items = params.Word("items") == "yes"});
}

std::unique_ptr<Policy> MakeOracleLinUcb(const ParamValues& params, const PolicyContext& context) {
  CODBAND_CHECK(context.truth != nullptr);
  return std::make_unique<OracleLinUcb>(context.dim, params.Number("lambda"),
                                        params.Number("delta1"), params.Number("sigma"),
                                        context.truth);
}

std::unique_ptr<Policy> MakeOracleGreedy(const ParamValues& params, const PolicyContext& context) {
  CODBAND_CHECK(context.truth != nullptr);
  return std::make_unique<OracleGreedy>(context.dim, params.Number("lambda"),
                                        params.Number("sigma"), context.truth);
}

}  // namespace codband
