#pragma once

#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/hyper_parameters.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

// Whether the reward is within six predictive standard deviations of some model; `own`, the user's,
// is asked first. O(d) for a model that predicts it well, else O(d²).
bool SomeModelExplains(const ModelPool& pool, const HyperParameters& hyper, const PoolModel& own,
                       const LearnStep& step);

}  // namespace codband
