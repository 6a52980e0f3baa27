#include "codband/policy/codband/model_evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace codband {
namespace {

// How many times the median a model may be at, and how little knowledge of a model doubles that.
constexpr double kMostNoise = 6;
constexpr double kMostDistance = 16;
constexpr double kMostIntercept =
    100;  // the square of a single number is often far from the median
constexpr double kMostSquare = 16;
constexpr double kFewObservations = 16;
constexpr double kFewDirections = 4;

double Noise(const ModelEvidence& model) { return model.residuals / model.degrees_of_freedom(); }
template <int part>
double Distance(const ModelEvidence& model) {
  return model.distance[part] / model.determined[part];
}
double Square(const ModelEvidence& model) { return model.reward_squares / model.observations; }

// How much is known of each: 1 where there are a few, less below.
double KnownNoise(const ModelEvidence& model) {
  const double free = model.degrees_of_freedom();
  return free < 1 ? 0 : free / kFewObservations;
}
double KnownFeatures(const ModelEvidence& model) { return model.determined[0] / kFewDirections; }
double KnownIntercept(const ModelEvidence& model) { return model.determined[1]; }
double KnownSquare(const ModelEvidence& model) { return model.observations / kFewObservations; }

// Whether `value` is far beyond `other`, where so much is known of the model.
bool IsFar(double value, double other, double times, double known) {
  return known > 0 && value > times * (1 + 1 / known) * other;
}

// By what a value far beyond the median is to be multiplied; 1 for others.
double Shrink(double value, double median, double times, double known) {
  return median > 0 && IsFar(value, median, times, known) ? median / value : 1;
}

}  // namespace

void ModelEvidence::Add(const ModelEvidence& other) {
  observations += other.observations;
  reward_sum += other.reward_sum;
  reward_squares += other.reward_squares;
  feature_squares += other.feature_squares;
  residuals += other.residuals;
  for (std::size_t part = 0; part < 2; ++part) {
    determined[part] += other.determined[part];
    distance[part] += other.distance[part];
  }
  periods += other.periods;
}

template <typename Value, typename Known>
double EvidenceBounds::Median(std::span<const ModelEvidence> models, const Value& value,
                              const Known& known) {
  values_.clear();
  double total = 0;
  for (const ModelEvidence& model : models) {
    const double weight = model.periods * std::min(1.0, known(model));
    if (!(weight > 0)) continue;
    values_.emplace_back(value(model), weight);
    total += weight;
  }
  std::ranges::sort(values_);
  double below = 0;
  for (const auto& [at, weight] : values_) {
    below += weight;
    if (2 * below >= total) return at;
  }
  return std::numeric_limits<double>::infinity();
}

bool EvidenceBounds::Apply(std::span<ModelEvidence> models) {
  const double usual_noise = Median(models, Noise, KnownNoise);
  const double usual_features = Median(models, Distance<0>, KnownFeatures);
  const double usual_intercept = Median(models, Distance<1>, KnownIntercept);
  const double usual_square = Median(models, Square, KnownSquare);
  bool beyond = false;
  for (ModelEvidence& model : models) {
    // A model without noise is as far from all others: a user who sends the same all the time.
    const double noise = Shrink(Noise(model), usual_noise, kMostNoise, KnownNoise(model));
    const bool noiseless = IsFar(usual_noise, Noise(model), kMostNoise, KnownNoise(model));
    const double features =
        Shrink(Distance<0>(model), usual_features, kMostDistance, KnownFeatures(model));
    const double intercept =
        Shrink(Distance<1>(model), usual_intercept, kMostIntercept, KnownIntercept(model));
    const double square = Shrink(Square(model), usual_square, kMostSquare, KnownSquare(model));
    if (noise == 1 && !noiseless && features == 1 && intercept == 1 && square == 1) continue;
    beyond = true;
    model.residuals =
        noiseless ? usual_noise * model.degrees_of_freedom() : noise * model.residuals;
    model.distance[0] *= features;
    model.distance[1] *= intercept;
    model.weight = std::min(features, intercept);
    model.reward_squares *= square;
    model.reward_sum *= std::sqrt(square);
  }
  return beyond;
}

}  // namespace codband
