#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace codband {

// What models tell of their common prior (prior_learner.h): of one model, or the sum over several.
// Arrays hold [features, intercept].
struct ModelEvidence {
  double observations = 0;
  double reward_sum = 0;
  double reward_squares = 0;
  double feature_squares = 0;
  double residuals = 0;       // squared
  double determined[2] = {};  // γ, how many directions the data determine
  double distance[2] = {};    // |μ - m|², from the common mean
  double periods = 0;         // n_k
  double weight = 1;          // in the common mean

  void Add(const ModelEvidence& other);
  double degrees_of_freedom() const { return observations - determined[0] - determined[1]; }
};

// No model decides alone, however many observations one of its users has brought. Where the noise
// of a model is far from the median of all models, or its distance from the common mean or its
// rewards are far beyond it, the model counts as if it were at the median, in which models weigh by
// their periods. Models that are alike are not touched. Owns scratch memory; not thread-safe.
class EvidenceBounds {
 public:
  // Returns whether a model was beyond a bound.
  bool Apply(std::span<ModelEvidence> models);

 private:
  template <typename Value, typename Known>
  double Median(std::span<const ModelEvidence> models, const Value& value, const Known& known);

  std::vector<std::pair<double, double>> values_;  // each with its weight
};

}  // namespace codband
