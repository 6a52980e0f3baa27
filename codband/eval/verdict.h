#pragma once

#include <optional>
#include <string>

#include "codband/eval/evaluate.h"

namespace codband::eval {

// The estimate of a target that people should look at first: the mean of the log, else the doubly
// robust one. Nothing if no event supports it.
const Estimate* HeadlineOf(const TargetReport& target);

// With a smaller effective sample an estimate is hardly more than the reward model's guess, and the
// bootstrap does not know it: no verdict on that policy.
inline constexpr double kJudgedFrom = 25;
// The weights of a target average 1 if the log has the choices that it would make. Where they
// average less than this, more than half of these are missing and the estimate is the reward
// model's guess with an interval that does not know it: no verdict either.
inline constexpr double kCoveredFrom = 0.5;

// What the evaluation says, in a few sentences for people: which policy is best, by how much
// beyond what was logged, whether the intervals allow to say so, and of which policies the log
// says too little.
std::string Verdict(const Evaluation& evaluation, double confidence);

}  // namespace codband::eval
