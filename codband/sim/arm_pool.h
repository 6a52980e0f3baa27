#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codband/base/random.h"

namespace codband::sim {

// What the features of an arm are like. All arms have norm 1.
enum class FeatureKind {
  kGaussian,  // coordinate i of d drawn from N(0, (d-i)/d): the paper's
  kOneHot,    // four fields, each with one value of about d/4: four coordinates are 1/2
  kPadded,    // Gaussian on the first fifth of the coordinates, 0 on the others
  kAlike,     // one of ten Gaussian vectors: many arms look the same
};

// By kind.
inline constexpr std::array<std::string_view, 4> kFeatureNames = {"gaussian", "one-hot", "padded",
                                                                  "alike"};

// The arms that a population is offered. Everything is a function of the seed. Not thread-safe for
// writing.
class ArmPool {
 public:
  struct Options {
    std::size_t size;
    std::size_t dim;
    FeatureKind kind = FeatureKind::kGaussian;
    // Rounds after which an arm makes room for another one, a few of them in every round; 0: never.
    std::size_t life = 0;
  };

  // `stream` gives the random numbers of an arm: event 0 those of all first ones.
  ArmPool(const Options& options, std::uint64_t seed, std::uint64_t purpose);

  // Rounds come in order.
  void StartRound(std::size_t round);

  std::size_t size() const { return options_.size; }
  std::span<const double> features(std::size_t place) const {
    return std::span(features_).subspan(place * options_.dim, options_.dim);
  }
  // The arm at a place: no other arm ever has the same number.
  std::uint64_t number(std::size_t place) const {
    return place + options_.size * Generation(place, round_);
  }

 private:
  // How many arms were at a place before.
  std::size_t Generation(std::size_t place, std::size_t round) const;
  RandomStream Stream(std::uint64_t event) const { return {{seed_, event}, purpose_}; }
  void Draw(RandomStream& random, std::span<double> arm) const;

  Options options_;
  std::uint64_t seed_;
  std::uint64_t purpose_;
  std::size_t round_ = 0;
  std::vector<double> features_;    // row-major
  std::vector<double> prototypes_;  // of arms that are alike, row-major
};

// Scales to norm 1.
void Normalise(std::span<double> v);

}  // namespace codband::sim
