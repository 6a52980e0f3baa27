#include "codband/eval/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "codband/base/text.h"

namespace codband::eval {
namespace {

// A number as exact as an interval of this width allows: a tenth to a hundredth of it.
std::string FormatWithin(double value, double width) {
  if (!(width > 0)) return FormatNumber(value);
  const double step = std::pow(10, std::floor(std::log10(width)) - 1);
  return FormatNumber(std::round(value / step) * step + 0.0);  // not -0
}

struct Headline {
  const TargetReport* target = nullptr;
  const Estimate* estimate = nullptr;

  double value() const { return *estimate->value; }
  std::string Text() const {
    if (!estimate->bootstrap) return FormatNumber(value()) + " per decision";
    const Interval& interval = estimate->bootstrap->interval;
    const double width = interval.high - interval.low;
    return fmt::format("{} per decision ({} to {})", FormatWithin(value(), width),
                       FormatWithin(interval.low, width), FormatWithin(interval.high, width));
  }
};

std::string Difference(double value, double reference) {
  if (std::abs(reference) < 1e-12) return FormatNumber(value - reference) + " more";
  return fmt::format("{:.0f}% more", 100 * (value - reference) / std::abs(reference));
}

}  // namespace

const Estimate* HeadlineOf(const TargetReport& target) {
  const Estimator wanted = target.on_policy ? Estimator::kMean : Estimator::kDr;
  const auto found = std::ranges::find(target.estimates, wanted, &Estimate::estimator);
  return found == target.estimates.end() || !found->value ? nullptr : &*found;
}

std::string Verdict(const Evaluation& evaluation, double confidence) {
  Headline logged;
  Headline best;
  std::vector<std::string> unknown;
  for (const TargetReport& target : evaluation.targets) {
    const Headline one{.target = &target, .estimate = HeadlineOf(target)};
    if (target.on_policy) {
      if (one.estimate != nullptr) logged = one;
    } else if (one.estimate == nullptr || target.effective_sample < kJudgedFrom ||
               target.mean_weight < kCoveredFrom) {
      unknown.push_back(target.name);
    } else if (best.target == nullptr || one.value() > best.value()) {
      best = one;
    }
  }
  if (best.target == nullptr) {
    return "The log supports an estimate of no other policy: too few of its decisions are ones "
           "that another policy would make.";
  }
  const std::string name = best.target->name;
  std::string text;
  if (logged.target == nullptr) {
    text = fmt::format("{} is best, with {}.", name, best.Text());
  } else if (best.value() <= logged.value()) {
    text = fmt::format(
        "No policy would have earned more than what was logged, {}; the next is {} "
        "with {}.",
        logged.Text(), name, best.Text());
  } else {
    const bool known = best.estimate->bootstrap && logged.estimate->bootstrap;
    const bool apart =
        known && best.estimate->bootstrap->interval.low > logged.estimate->bootstrap->interval.high;
    text = fmt::format("{} would have earned {}, {} than what was logged, {}. {}", name,
                       best.Text(), Difference(best.value(), logged.value()), logged.Text(),
                       apart ? fmt::format("The {:g}% intervals do not overlap.", 100 * confidence)
                             : "The intervals overlap: the difference may be chance.");
  }
  if (!unknown.empty()) {
    text += fmt::format(
        " The log says too little about {}: it contains too few of the choices that {} make.",
        fmt::join(unknown, ", "), unknown.size() == 1 ? "it would" : "they would");
  }
  if (!best.target->warnings.empty()) text += " See the warnings.";
  return text;
}

}  // namespace codband::eval
