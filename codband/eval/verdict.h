#pragma once

#include <optional>
#include <string>

#include "codband/eval/evaluate.h"

namespace codband::eval {

// The estimate of a target that people should look at first: the mean of the log, else the doubly
// robust one. Nothing if no event supports it.
const Estimate* HeadlineOf(const TargetReport& target);

// What the evaluation says, in a sentence or two for people: which policy is best, by how much
// beyond what was logged, and whether the intervals allow to say so.
std::string Verdict(const Evaluation& evaluation, double confidence);

}  // namespace codband::eval
