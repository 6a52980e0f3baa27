#pragma once

#include <cstddef>
#include <string_view>

#include "codband/policy/user_graph.h"

namespace codband {

// Of the paper's window test; window_detector.h defines the symbols.
struct WindowDetectorOptions {
  double ridge = 0.1;
  bool fixed_alpha = true;  // or the paper's formula for α
  double alpha = 0.6;
  double delta = 0.1;
  double delta1 = 0.01;
  double delta2 = 0.1;
  std::size_t tau = 20;
};

// The parts of a CoDBand, by their words in parts.cc, and their settings.
struct CoDBandOptions {
  std::string_view likelihood = "joint";
  std::string_view detector = "bayes";
  std::string_view hyper = "learned";
  std::string_view model_prior = "crp";
  std::string_view explore = "adaptive";
  std::string_view departure = "learned";
  std::string_view items = "learned";
  std::string_view outliers = "limited";
  std::string_view lengths = "damped";
  bool intercept = true;
  double v = 1;
  double lambda = 25;  // hyper=fixed; in the registry d, the precision of a random θ of norm 1
  double sigma = 0.1;  // hyper=fixed
  double lambda0 = 0;  // hyper=learned: initial value; 0: from the first reward
  double sigma0 = 0;
  double hazard = 0.001;  // hyper=learned: initial value
  double decay = 0;       // model_prior=hawkes: time constant; 0: learned
  double a = 7.5;
  double b = 1;
  std::size_t window = 8;    // detector=bayes: how far back a change can be found
  std::size_t resample = 2;  // detector=bayes: Gibbs steps of other young users at each step
  std::size_t history = 1;   // how many closed periods of a user are remembered; 0: all
  // items=fixed: variances of an item's effect, and of that to a group, over that of the noise
  double item_ratio = 0;
  double group_item_ratio = 0;
  std::size_t memory = 70;  // product only: how many recent observations are scored
  WindowDetectorOptions window_detector = {};
  const UserGraph* friends = nullptr;  // model_prior=friends; outlives the policy
};

}  // namespace codband
