// The parameters of codband by name: what the registry and `codband policies codband` show.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/parts.h"
#include "codband/policy/common_params.h"

namespace codband {
namespace {

using Test = WindowDetectorOptions;

// A parameter that is a number: where it is in the options, and what the registry says of it. Its
// default is that of the options.
struct Number {
  std::variant<double CoDBandOptions::*, std::size_t CoDBandOptions::*, double Test::*,
               std::size_t Test::*>
      field;
  ParamInfo info;
};

template <typename Field, typename Options>
auto& FieldOf(Options& options, Field field) {
  if constexpr (std::is_invocable_v<Field, Options&>) {
    return options.*field;
  } else {
    return options.window_detector.*field;
  }
}

ParamInfo Hyper(std::string_view when, ParamInfo info) {
  info.help = fmt::format("hyper={}: {}", when, info.help);
  return info;
}

ParamInfo Lambda() {
  ParamInfo info = Hyper("fixed", LambdaParam(0));
  info.default_from = DefaultFrom::kDimension;
  return info;
}

ParamInfo Chance(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .min = 1e-9, .max = 1};
}

// In the order in which they are listed; `bound` comes after `tau`.
std::vector<Number> Numbers() {
  using Options = CoDBandOptions;
  return {
      {&Options::v, DrawScaleParam(0)},
      {&Options::lambda, Lambda()},
      {&Options::sigma, Hyper("fixed", SigmaParam())},
      {&Options::lambda0,
       {.name = "lambda0",
        .help = "hyper=learned: initial prior precision; 0: from the first reward",
        .min = 0,
        .max = 1e12,
        .live = true}},
      {&Options::sigma0,
       {.name = "sigma0",
        .help = "hyper=learned: initial standard deviation of the noise; 0: from the first reward",
        .min = 0,
        .max = 1e12,
        .live = true}},
      {&Options::hazard,
       {.name = "hazard",
        .help = "detector=bayes: chance of a change between two observations; hyper=learned: its "
                "initial value",
        .min = 1e-9,
        .max = 0.5,
        .live = true}},
      {&Options::decay,
       {.name = "decay",
        .help = "prior=hawkes: time constant of recency, in observations; 0: learned",
        .min = 0,
        .max = 1e12}},
      {&Options::window,
       {.name = "window",
        .help = "detector=bayes: how many observations back a change can be found",
        .min = 1,
        .max = 1000}},
      {&Options::resample,
       {.name = "resample",
        .help = "detector=bayes: how many other users with a young period are resampled at each "
                "step",
        .min = 0,
        .max = 64,
        .live = true}},
      {&Options::history,
       {.name = "history",
        .help = "how many of a user's past periods the pool goes on learning from; 0: all",
        .min = 0,
        .max = 1e6}},
      {&Options::a,
       {.name = "a",
        .help = "shape of the Gamma prior of the concentration α0",
        .min = 1e-3,
        .max = 1e6,
        .live = true}},
      {&Options::b,
       {.name = "b",
        .help = "rate of the Gamma prior of the concentration α0",
        .min = 1e-3,
        .max = 1e6,
        .live = true}},
      {&Options::memory,
       {.name = "memory",
        .help = "likelihood=product: how many recent observations are scored",
        .min = 1,
        .max = 100000}},
      {&Test::tau,
       {.name = "tau",
        .help = "detector=window: how many recent observations are tested",
        .min = 1,
        .max = 100000}},
      {&Test::ridge,
       {.name = "ridge",
        .help = "detector=window: ridge of the user's own regression",
        .min = 1e-6,
        .max = 1e6}},
      {&Test::alpha,
       {.name = "alpha",
        .help = "detector=window, bound=fixed: how many widths of the user's own regression a "
                "reward may be off",
        .min = 0,
        .max = 1000}},
      {&Test::delta, Chance("delta", "detector=window: chance that noise alone exceeds ε")},
      {&Test::delta1,
       Chance("delta1", "detector=window: share of bad observations that is normal")},
      {&Test::delta2, Chance("delta2", "detector=window: chance of a false alarm")},
  };
}

ParamInfo Shown(const Number& number) {
  ParamInfo info = number.info;
  std::visit(
      [&](auto field) {
        const CoDBandOptions defaults;
        info.default_value = static_cast<double>(FieldOf(defaults, field));
        info.integer = std::is_integral_v<std::remove_cvref_t<decltype(FieldOf(defaults, field))>>;
      },
      number.field);
  return info;
}

void Read(const ParamValues& params, const Number& number, CoDBandOptions& options) {
  std::visit(
      [&](auto field) {
        auto& value = FieldOf(options, field);
        if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
          value = params.Integer(number.info.name);
        } else {
          value = params.Number(number.info.name);
        }
      },
      number.field);
}

// A parameter whose words are the parts of a table.
template <typename Make>
ParamInfo Choice(std::string name, std::string_view help, std::span<const Part<Make>> parts,
                 bool live = false) {
  ParamInfo info{.name = std::move(name), .help = std::string(help), .live = live};
  for (const Part<Make>& part : parts) {
    info.help += fmt::format("{} {} ({})", &part == parts.data() ? ":" : ",", part.word, part.help);
    info.words.emplace_back(part.word);
  }
  return info;
}

std::vector<ParamInfo> Params() {
  std::vector<ParamInfo> params = {
      Choice("likelihood", "how a model is scored on a user's period", LikelihoodParts()),
      Choice("detector", "what notices that a user has changed", DetectorParts()),
      Choice("hyper", "noise, prior of a model and hazard", HyperParts()),
      Choice("prior", "which models are likely beforehand", ModelPriorParts()),
      Choice("explore", "when to draw the parameter (Thompson sampling)", ExplorationParts(), true),
      Choice("departure", "detector=bayes: how a user departs from the model", DepartureParts(),
             true),
      {.name = "intercept",
       .help = "whether models have a constant beside the features",
       .words = {"yes", "no"}}};
  for (const Number& number : Numbers()) {
    params.push_back(Shown(number));
    if (number.info.name == "tau") {
      params.push_back(
          {.name = "bound",
           .help = "detector=window: confidence bound with a fixed alpha, or the paper's formula",
           .words = {"fixed", "theory"}});
    }
  }
  return params;
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
  return {.name = "codband",
          .summary = "a pool of models shared by users who think alike; notices who has changed",
          .paper = "Li, Wu & Wang, SIGIR 2021",
          .shares_between_users = true,
          .detects_changes = true,
          .params = Params(),
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
        "use prior=crp");
  }
  if (params.Word("likelihood") == "product" && params.Word("detector") == "bayes") {
    return Status::InvalidArgument(
        "likelihood=product needs detector=window or detector=none: detector=bayes scores exactly");
  }
  return {};
}

std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context) {
  // The words of the table, which outlive the parameters.
  const auto word = [&](std::string_view name, const auto parts) {
    return FindPart(parts, params.Word(name)).word;
  };
  CoDBandOptions options{.likelihood = word("likelihood", LikelihoodParts()),
                         .detector = word("detector", DetectorParts()),
                         .hyper = word("hyper", HyperParts()),
                         .model_prior = word("prior", ModelPriorParts()),
                         .explore = word("explore", ExplorationParts()),
                         .departure = word("departure", DepartureParts()),
                         .intercept = params.Word("intercept") == "yes",
                         .friends = context.friends};
  options.window_detector.fixed_alpha = params.Word("bound") == "fixed";
  for (const Number& number : Numbers()) Read(params, number, options);
  return MakeCoDBand(context.dim, options);
}

}  // namespace codband
