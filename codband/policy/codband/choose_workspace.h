#pragma once

#include <cstdint>
#include <vector>

#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/departure.h"
#include "codband/policy/codband/thompson_integral.h"
#include "codband/policy/item_effects.h"

namespace codband {

// The memory that choosing and ranking work in, so that they need not allocate. A choice takes the
// workspace of its thread once, at the top, and passes it down; what refers to it does not outlive
// that choice. One workspace serves policies of all dimensions in turn.
struct ChooseWorkspace {
  ChancesScratch chances_scratch;
  std::vector<double> chances;
  DepartureSolver departure_solver;
  std::vector<double> departure;
  std::vector<ItemEffects::Share> shares;
  std::vector<std::uint32_t> item_slots;
  std::vector<double> item_means;
  std::vector<double> item_variances;
  std::vector<double> added;
  std::vector<double> theta;
  std::vector<double> means;
  std::vector<double> variances;
  std::vector<double> prior_variances;
  std::vector<double> disagreement;
  std::vector<double> rows;  // features of arms
  std::vector<double> seen;  // the same as the models see them
  ThompsonIntegral::Points points;

  // CoDBand has no other thread_local. Not reentrant: a choice does not start another one.
  static ChooseWorkspace& OfThisThread() {
    thread_local ChooseWorkspace workspace;
    return workspace;
  }
};

}  // namespace codband
