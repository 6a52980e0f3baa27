#include "codband/policy/codband/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "codband/policy/codband/bayes_detector.h"
#include "codband/policy/codband/codband_options.h"
#include "codband/policy/codband/window_detector.h"

namespace codband {
namespace {

ItemEffects LearnedItemEffects(const CoDBandOptions& /*options*/) { return ItemEffects(true); }

ItemEffects FixedItemEffects(const CoDBandOptions& options) {
  return ItemEffects::WithRatios({.item = options.item_ratio, .group = options.group_item_ratio});
}

// The parts of a parameter stand together, the default first.
constexpr Part kParts[] = {
    {"likelihood", "joint", "exact, from sufficient statistics", MakeJointLikelihood},
    {"likelihood", "product", "the paper's, over recent observations", MakeProductLikelihood},
    {"detector", "bayes", "a Bayesian filter over the pool", MakeBayesDetector},
    {"detector", "window", "the paper's test over a window", MakeWindowDetector},
    {"detector", "none", "nobody ever changes", MakeNoDetector},
    {"hyper", "learned", "inferred online by empirical Bayes", true},
    {"hyper", "fixed", "as given by lambda, sigma and hazard", false},
    {"prior", "crp", "popular ones, by a Chinese restaurant process", MakeCrpPrior},
    {"prior", "hawkes", "recently popular ones", MakeHawkesPrior},
    {"prior", "friends", "those of friends, which needs a user graph", MakeFriendsPrior},
    {"explore", "adaptive", "by what trying an arm is worth", Exploration{0, AddWorthOfTrying}},
    {"explore", "thompson", "by drawing the parameter", Exploration{1, nullptr}},
    {"departure", "learned", "a random effect for each user, its variance learned", true},
    {"departure", "none", "users of a model are alike", false},
    {"items", "learned", "an effect of each item by itself and in a group, variances learned",
     LearnedItemEffects},
    {"items", "fixed", "the same, variances as given by item_ratio and group_item_ratio",
     FixedItemEffects},
    {"items", "none", "an item is its features", ItemEffectsFactory(nullptr)},
    {"outliers", "limited", "the influence of one observation and of one user is bounded", true},
    {"outliers", "kept", "all count as they come", false},
    {"lengths", "damped", "of clicks the square root counts", true},
    {"lengths", "given", "they count as they are", false},
};

}  // namespace

std::span<const Part> PartsOf(std::string_view parameter) {
  const auto is_one = [&](const Part& part) { return part.parameter == parameter; };
  const auto first = std::ranges::find_if(kParts, is_one);
  return {first, std::find_if_not(first, std::end(kParts), is_one)};
}

const Part& FindPart(std::string_view parameter, std::string_view word) {
  std::string words;
  for (const Part& part : PartsOf(parameter)) {
    if (part.word == word) return part;
    words += fmt::format("{}{}", words.empty() ? "" : ", ", part.word);
  }
  throw std::invalid_argument(
      fmt::format("[CoDBand] {} = '{}', expected one of {}", parameter, word, words));
}

}  // namespace codband
