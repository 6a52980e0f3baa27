#include "codband/policy/baselines/lints.h"

#include "codband/policy/baselines/per_user_linear.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

class LinTs final : public PerUserLinear {
 public:
  LinTs(std::size_t dim, LinTsOptions options)
      : PerUserLinear(dim, options.lambda, options.sigma * options.sigma), v_(options.v) {}

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override {
    decision.model = user;
    RandomStream random = StreamFor(key, DrawPurpose::kParameter);
    return ChooseByThompsonSampling(PosteriorOf(user), v_, random, arms, decision);
  }

  double v_;
};

}  // namespace

PolicyInfo LinTsInfo() {
  return {.name = "lints",
          .summary = "one Bayesian linear model per user, Thompson sampling; never forgets",
          .paper = "Agrawal & Goyal, ICML 2013",
          .params = {DrawScaleParam(LinTsOptions{}.v), LambdaParam(LinTsOptions{}.lambda),
                     SigmaParam()}};
}

std::unique_ptr<Policy> MakeLinTs(std::size_t dim, LinTsOptions options) {
  return std::make_unique<LinTs>(dim, options);
}

std::unique_ptr<Policy> MakeLinTs(const ParamValues& params, const PolicyContext& context) {
  return MakeLinTs(context.dim, {.v = params.Number("v"),
                                 .lambda = params.Number("lambda"),
                                 .sigma = params.Number("sigma")});
}

}  // namespace codband
