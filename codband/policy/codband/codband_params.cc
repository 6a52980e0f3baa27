// The parameters of codband by name: what the registry and `codband policies codband` show.
#include "codband/policy/codband/codband.h"
#include "codband/policy/common_params.h"

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
          {"hyper", "fixed"},
          {"prior", "crp"},
          {"explore", "thompson"},
          {"departure", "none"},
          {"intercept", "no"},
          {"history", "0"},
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
  lambda.help = "hyper=fixed: " + lambda.help;
  ParamInfo sigma = SigmaParam();
  sigma.help = "hyper=fixed: " + sigma.help;
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
            .words = {"bayes", "window", "none"}},
           {.name = "hyper",
            .help = "whether noise, prior of a model and hazard are learned",
            .words = {"learned", "fixed"}},
           {.name = "prior",
            .help = "which models are likely beforehand: popular ones, recently popular ones, or "
                    "those of friends (needs a user graph)",
            .words = {"crp", "hawkes", "friends"}},
           {.name = "explore",
            .help = "Thompson sampling where the arms call for it, or always",
            .words = {"adaptive", "thompson"},
            .live = true},
           {.name = "departure",
            .help = "detector=bayes: whether each user departs from the taste of the model as far "
                    "as users are seen to differ",
            .words = {"learned", "none"},
            .live = true},
           {.name = "intercept",
            .help = "whether models have a constant beside the features",
            .words = {"yes", "no"}},
           DrawScaleParam(defaults.v),
           lambda,
           sigma,
           {.name = "lambda0",
            .help = "hyper=learned: prior precision to begin with; 0: from the first reward",
            .min = 0,
            .max = 1e12,
            .live = true},
           {.name = "sigma0",
            .help = "hyper=learned: standard deviation of the noise to begin with; 0: from the "
                    "first reward",
            .min = 0,
            .max = 1e12,
            .live = true},
           {.name = "hazard",
            .help = "detector=bayes: chance of a change between two observations; hyper=learned: "
                    "to begin with",
            .min = 1e-9,
            .max = 0.5,
            .default_value = defaults.hazard,
            .live = true},
           {.name = "decay",
            .help = "prior=hawkes: time constant of recency, in observations; 0: learned",
            .min = 0,
            .max = 1e12},
           {.name = "window",
            .help = "detector=bayes: how many observations back a change can be found",
            .min = 1,
            .max = 1000,
            .default_value = static_cast<double>(defaults.window),
            .integer = true},
           {.name = "resample",
            .help = "detector=bayes: how many other young users are placed anew at each step",
            .min = 0,
            .max = 64,
            .default_value = static_cast<double>(defaults.resample),
            .integer = true,
            .live = true},
           {.name = "history",
            .help = "how many of a user's past tastes the pool goes on learning from; 0: all",
            .min = 0,
            .max = 1e6,
            .default_value = static_cast<double>(defaults.history),
            .integer = true},
           {.name = "a",
            .help = "shape of the Gamma prior of the concentration α0",
            .min = 1e-3,
            .max = 1e6,
            .default_value = defaults.a,
            .live = true},
           {.name = "b",
            .help = "rate of the Gamma prior of the concentration α0",
            .min = 1e-3,
            .max = 1e6,
            .default_value = defaults.b,
            .live = true},
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
            .default_value = static_cast<double>(defaults.window_detector.tau),
            .integer = true},
           {.name = "bound",
            .help = "detector=window: confidence bound with a fixed alpha, or the paper's formula",
            .words = {"fixed", "theory"}},
           {.name = "ridge",
            .help = "detector=window: ridge of the user's own regression",
            .min = 1e-6,
            .max = 1e6,
            .default_value = defaults.window_detector.ridge},
           {.name = "alpha",
            .help = "detector=window, bound=fixed: how many widths of the user's own regression a "
                    "reward may be off",
            .min = 0,
            .max = 1000,
            .default_value = defaults.window_detector.alpha},
           Chance("delta", "detector=window: chance that noise alone exceeds ε",
                  defaults.window_detector.delta),
           Chance("delta1", "detector=window: share of bad observations that is normal",
                  defaults.window_detector.delta1),
           Chance("delta2", "detector=window: chance of a false alarm",
                  defaults.window_detector.delta2)},
      .presets = {{.name = "paper",
                   .help = "the settings of the paper's experiments, with the exact likelihood",
                   .values = PaperValues("joint")},
                  {.name = "paper-product",
                   .help = "the same with the paper's own likelihood, to the letter",
                   .values = PaperValues("product")}}};
}

Status CheckCoDBand(const ParamValues& params, const PolicyContext& context) {
  if (params.Word("prior") == "friends" && context.friends == nullptr) {
    return Status::InvalidArgument(
        "prior=friends needs a user graph (simulate takes one with --friends FILE); without one "
        "use "
        "prior=crp");
  }
  if (params.Word("likelihood") == "product" && params.Word("detector") == "bayes") {
    return Status::InvalidArgument(
        "likelihood=product needs detector=window or detector=none: detector=bayes scores exactly");
  }
  return {};
}

std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context) {
  const auto is = [&](std::string_view name, std::string_view word) {
    return params.Word(name) == word;
  };
  return MakeCoDBand(
      context.dim,
      {.likelihood = is("likelihood", "joint") ? LikelihoodKind::kJoint : LikelihoodKind::kProduct,
       .detector = is("detector", "bayes")    ? DetectorKind::kBayes
                   : is("detector", "window") ? DetectorKind::kWindow
                                              : DetectorKind::kNone,
       .hyper = is("hyper", "learned") ? HyperKind::kLearned : HyperKind::kFixed,
       .model_prior = is("prior", "crp")      ? ModelPriorKind::kCrp
                      : is("prior", "hawkes") ? ModelPriorKind::kHawkes
                                              : ModelPriorKind::kFriends,
       .explore = is("explore", "adaptive") ? ExploreKind::kAdaptive : ExploreKind::kThompson,
       .departure = is("departure", "learned") ? DepartureKind::kLearned : DepartureKind::kNone,
       .intercept = is("intercept", "yes"),
       .v = params.Number("v"),
       .lambda = params.Number("lambda"),
       .sigma = params.Number("sigma"),
       .lambda0 = params.Number("lambda0"),
       .sigma0 = params.Number("sigma0"),
       .hazard = params.Number("hazard"),
       .decay = params.Number("decay"),
       .a = params.Number("a"),
       .b = params.Number("b"),
       .window = params.Integer("window"),
       .resample = params.Integer("resample"),
       .history = params.Integer("history"),
       .memory = params.Integer("memory"),
       .window_detector = {.ridge = params.Number("ridge"),
                           .fixed_alpha = is("bound", "fixed"),
                           .alpha = params.Number("alpha"),
                           .delta = params.Number("delta"),
                           .delta1 = params.Number("delta1"),
                           .delta2 = params.Number("delta2"),
                           .tau = params.Integer("tau")},
       .friends = context.friends});
}

}  // namespace codband
