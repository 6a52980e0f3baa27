#include "codband/policy/baselines/linucb.h"

#include "codband/policy/baselines/per_user_linear.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"

namespace codband {
namespace {

class LinUcb final : public PerUserLinear {
 public:
  LinUcb(std::size_t dim, LinUcbOptions options)
      : PerUserLinear(dim, options.lambda, 1, options.items), alpha_(options.alpha) {}

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    decision.model = user;
    return ChooseByUpperBound(PosteriorOf(user), alpha_, arms, decision,
                              items().ScoresOf(arms, ItemScratch::OfThisThread()));
  }

  double alpha_;
};

}  // namespace

PolicyInfo LinUcbInfo() {
  return {.name = "linucb",
          .summary = "one linear model per user, upper confidence bound; never forgets",
          .paper = "Li, Chu, Langford & Schapire, WWW 2010",
          .params = {AlphaParam(LinUcbOptions{}.alpha), LambdaParam(LinUcbOptions{}.lambda),
                     ItemsParam()}};
}

std::unique_ptr<Policy> MakeLinUcb(std::size_t dim, LinUcbOptions options) {
  return std::make_unique<LinUcb>(dim, options);
}

std::unique_ptr<Policy> MakeLinUcb(const ParamValues& params, const PolicyContext& context) {
  return MakeLinUcb(context.dim, {.alpha = params.Number("alpha"),
                                  .lambda = params.Number("lambda"),
                                  .items = params.Word("items") == "yes"});
}

}  // namespace codband
