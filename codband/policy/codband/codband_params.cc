// The parameters of codband by name: what the registry and `codband policies codband` show.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

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

ParamInfo DrawScale() {
  ParamInfo info = DrawScaleParam(0);
  info.help = "explore=thompson: " + info.help;
  return info;
}

enum class Change { kNever, kLive };  // whether another value goes on with what was learned

ParamInfo Range(std::string name, double min, double max, Change change, std::string help) {
  return {.name = std::move(name),
          .help = std::move(help),
          .min = min,
          .max = max,
          .live = change == Change::kLive};
}

ParamInfo Chance(std::string name, std::string help) {
  return Range(std::move(name), 1e-9, 1, Change::kNever, std::move(help));
}

// In the order in which they are listed; `bound` comes after `tau`.
std::vector<Number> Numbers() {
  using Options = CoDBandOptions;
  using enum Change;
  return {
      {&Options::v, DrawScale()},
      {&Options::lambda, Lambda()},
      {&Options::sigma, Hyper("fixed", SigmaParam())},
      {&Options::lambda0,
       Range("lambda0", 0, 1e12, kLive,
             "hyper=learned: initial prior precision; 0: from the first reward")},
      {&Options::sigma0,
       Range("sigma0", 0, 1e12, kLive,
             "hyper=learned: initial standard deviation of the noise; 0: from the first reward")},
      {&Options::hazard,
       Range("hazard", 1e-9, 0.5, kLive,
             "detector=bayes: chance of a change between two observations; hyper=learned: its "
             "initial value")},
      {&Options::decay,
       Range("decay", 0, 1e12, kNever,
             "prior=hawkes: time constant of recency, in observations; 0: learned")},
      {&Options::window, Range("window", 1, 1000, kNever,
                               "detector=bayes: how many observations back a change can be found")},
      {&Options::resample,
       Range("resample", 0, 64, kLive,
             "detector=bayes: how many other users with a young period are resampled at each "
             "step")},
      {&Options::history,
       Range("history", 0, 1e6, kNever,
             "how many of a user's past periods the pool goes on learning from; 0: all")},
      {&Options::item_ratio,
       Range("item_ratio", 0, 1e6, kNever,
             "items=fixed: variance of an item's effect, divided by that of the noise")},
      {&Options::group_item_ratio,
       Range("group_item_ratio", 0, 1e6, kNever,
             "items=fixed: the same for the effect of an item in a group")},
      {&Options::a,
       Range("a", 1e-3, 1e6, kLive, "shape of the Gamma prior of the concentration α0")},
      {&Options::b,
       Range("b", 1e-3, 1e6, kLive, "rate of the Gamma prior of the concentration α0")},
      {&Options::memory, Range("memory", 1, 100000, kNever,
                               "likelihood=product: how many recent observations are scored")},
      {&Test::tau,
       Range("tau", 1, 100000, kNever, "detector=window: how many recent observations are tested")},
      {&Test::ridge,
       Range("ridge", 1e-6, 1e6, kNever, "detector=window: ridge of the user's own regression")},
      {&Test::alpha,
       Range("alpha", 0, 1000, kNever,
             "detector=window, bound=fixed: how many widths of the user's own regression a "
             "reward may be off")},
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

// A parameter that selects a part.
ParamInfo Choice(std::string name, std::string_view help, Change change = Change::kNever) {
  ParamInfo info = Range(std::move(name), 0, 0, change, {});
  for (const Part& part : PartsOf(info.name)) {
    info.help += fmt::format("{} {} ({})", info.words.empty() ? ":" : ",", part.word, part.help);
    info.words.emplace_back(part.word);
  }
  info.help.insert(0, help);
  return info;
}

std::vector<ParamInfo> Params() {
  std::vector<ParamInfo> params = {
      Choice("likelihood", "how a model is scored on a user's period"),
      Choice("detector", "what notices that a user has changed"),
      Choice("hyper", "noise, prior of a model and hazard"),
      Choice("prior", "which models are likely beforehand"),
      Choice("explore", "how to try what is not known", Change::kLive),
      Choice("departure", "detector=bayes: how a user departs from the model", Change::kLive),
      Choice("items", "what an item is beyond its features"),
      Choice("outliers", "observations and users far from all others", Change::kLive),
      Choice("lengths", "hyper=learned: the lengths of feature vectors"),
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
          {"items", "none"},
          {"outliers", "kept"},
          {"lengths", "given"},
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
  if (params.Word("likelihood") == "product" && params.Word("detector") != "window" &&
      params.Word("detector") != "none") {
    return Status::InvalidArgument(
        "likelihood=product needs detector=window or detector=none: no other detector saves the "
        "observations that it scores");
  }
  return {};
}

std::unique_ptr<Policy> MakeCoDBand(const ParamValues& params, const PolicyContext& context) {
  // The words of the table, which outlive the parameters.
  const auto word = [&](std::string_view name) { return FindPart(name, params.Word(name)).word; };
  CoDBandOptions options{.likelihood = word("likelihood"),
                         .detector = word("detector"),
                         .hyper = word("hyper"),
                         .model_prior = word("prior"),
                         .explore = word("explore"),
                         .departure = word("departure"),
                         .items = word("items"),
                         .outliers = word("outliers"),
                         .lengths = word("lengths"),
                         .intercept = params.Word("intercept") == "yes",
                         .friends = context.friends};
  options.window_detector.fixed_alpha = params.Word("bound") == "fixed";
  for (const Number& number : Numbers()) Read(params, number, options);
  return MakeCoDBand(context.dim, options);
}

}  // namespace codband
