// The parameters of codband by name: what the registry and `codband policies codband` show.
#include "codband/policy/codband/codband.h"
#include "codband/policy/lints.h"
#include "codband/policy/linucb.h"

namespace codband {
namespace {

ParamInfo Chance(std::string name, std::string help, double default_value) {
  return {.name = std::move(name),
          .help = std::move(help),
          .min = 1e-9,
          .max = 1,
          .default_value = default_value};
}

std::vector<std::pair<std::string, std::string>> PaperValues(std::string likelihood) {
  return {{"likelihood", std::move(likelihood)},
          {"detector", "window"},
          {"v", "1"},
          {"lambda", "0.1"},
          {"a", "7.5"},
          {"b", "1"},
          {"memory", "70"},
          {"tau", "20"},
          {"bound", "fixed"},
          {"ridge", "0.1"},
          {"alpha", "0.6"},
          {"delta", "0.1"},
          {"delta1", "0.01"},
          {"delta2", "0.1"}};
}

}  // namespace

PolicyInfo CoDBandInfo() {
  const CoDBandOptions defaults;
  ParamInfo lambda = LambdaParam(defaults.lambda);
  lambda.default_from = DefaultFrom::kDimension;
  return {
      .name = "codband",
      .summary = "a pool of models shared by users who think alike; notices who has changed",
      .paper = "Li, Wu & Wang, SIGIR 2021",
      .shares_between_users = true,
      .detects_changes = true,
      .params =
          {{.name = "likelihood",
            .help = "how a model is scored on a user's period: joint is exact, product is the "
                    "paper's",
            .words = {"joint", "product"}},
           {.name = "detector",
            .help = "what notices that a user has changed",
            .words = {"window", "none"}},
           DrawScaleParam(defaults.v),
           lambda,
           SigmaParam(),
           {.name = "a",
            .help = "shape of the Gamma prior of the concentration α0",
            .min = 1e-3,
            .max = 1e6,
            .default_value = defaults.a},
           {.name = "b",
            .help = "rate of the Gamma prior of the concentration α0",
            .min = 1e-3,
            .max = 1e6,
            .default_value = defaults.b},
           {.name = "memory",
            .help = "likelihood=product: how many recent observations are scored",
            .min = 1,
            .max = 100000,
            .default_value = static_cast<double>(defaults.memory),
            .integer = true},
           {.name = "tau",
            .help = "detector=window: how many recent observations are tested",
            .min = 1,
            .max = 100000,
            .default_value = static_cast<double>(defaults.window.tau),
            .integer = true},
           {.name = "bound",
            .help = "detector=window: confidence bound with a fixed alpha, or the paper's formula",
            .words = {"fixed", "theory"}},
           {.name = "ridge",
            .help = "detector=window: ridge of the user's own regression",
            .min = 1e-6,
            .max = 1e6,
            .default_value = defaults.window.ridge},
           {.name = "alpha",
            .help = "detector=window, bound=fixed: how many widths of the user's own regression a "
                    "reward may be off",
            .min = 0,
            .max = 1000,
            .default_value = defaults.window.alpha},
           Chance("delta", "detector=window: chance that noise alone exceeds ε",
                  defaults.window.delta),
           Chance("delta1", "detector=window: share of bad observations that is normal",
                  defaults.window.delta1),
           Chance("delta2", "detector=window: chance of a false alarm", defaults.window.delta2)},
      .presets = {{.name = "paper",
                   .help = "the settings of the paper's experiments, with the exact likelihood",
                   .values = PaperValues("joint")},
                  {.name = "paper-product",
                   .help = "the same with the paper's own likelihood, to the letter",
                   .values = PaperValues("product")}}};
}

std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context) {
  return MakeCoDBand(context.dim,
                     {.likelihood = params.Word("likelihood") == "joint" ? LikelihoodKind::kJoint
                                                                         : LikelihoodKind::kProduct,
                      .detector = params.Word("detector") == "window" ? DetectorKind::kWindow
                                                                      : DetectorKind::kNone,
                      .v = params.Number("v"),
                      .lambda = params.Number("lambda"),
                      .sigma = params.Number("sigma"),
                      .a = params.Number("a"),
                      .b = params.Number("b"),
                      .memory = params.Integer("memory"),
                      .window = {.ridge = params.Number("ridge"),
                                 .fixed_alpha = params.Word("bound") == "fixed",
                                 .alpha = params.Number("alpha"),
                                 .delta = params.Number("delta"),
                                 .delta1 = params.Number("delta1"),
                                 .delta2 = params.Number("delta2"),
                                 .tau = params.Integer("tau")}});
}

}  // namespace codband
