#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "codband/policy/codband/outlook.h"

namespace codband {

// The chance of each arm under Thompson sampling, P(a = argmax xᵀθ̃), which has no closed form:
// integrated over a fixed set of normal vectors z, in pairs ±z so that the mean is exact. The
// models a user may be on share the pairs in proportion to their chances; a point of model k is θ =
// μ_k ± v L⁻ᵀz by the Cholesky factor of its precision. How many of the points an arm wins is its
// chance. Immutable: callers bring the memory.
class ThompsonIntegral {
 public:
  static constexpr std::size_t kPairs = 64;

  // Points of one posterior.
  struct Points {
    // Pairs that belong to one model.
    struct Share {
      std::size_t model;  // its index
      std::size_t begin;
      std::size_t end;
    };

    std::size_t pairs = 0;
    std::vector<Share> shares;
    std::vector<double> deltas;  // v L⁻ᵀz, feature by feature
    // The best score at each point so far, and whose it is (a whole number, as a double so that it
    // fits in a lane): with δ added first, subtracted second.
    std::array<std::array<double, kPairs>, 2> best_score;
    std::array<std::array<double, kPairs>, 2> best_arm;
    std::vector<double> scratch;

    std::size_t count() const { return 2 * pairs; }
    std::size_t ArmAt(std::size_t point) const {
      return static_cast<std::size_t>(best_arm[point % 2][point / 2]);
    }
    std::size_t ModelAt(std::size_t point) const;
    // Adds ±δ of a point to its model's mean.
    void AddDelta(std::size_t point, std::span<double> theta) const;
  };

  // Arms that are compared at the points.
  struct Arms {
    std::span<const double> rows;     // their features, as the models see them
    std::span<const double> centres;  // their scores by the mean of the share's model
    std::size_t first = 0;            // the number of the first of them
  };

  // `dim` features, intercept included; v scales the draw.
  ThompsonIntegral(std::size_t dim, double v);

  // The points for a user, none won yet. With many arms there are fewer: `numbers` is how many
  // features the arms have altogether.
  void Place(const Outlook& outlook, std::size_t numbers, Points& points) const;

  // Lets arms compete at the points of a share; arms come in rising order, and the first of equals
  // wins.
  void Compete(const Arms& arms, const Points::Share& share, Points& points) const;

 private:
  void PlaceShare(const linalg::GaussianPosterior& model, const Points::Share& share,
                  Points& points) const;

  std::size_t dim_;
  double v_;
  std::vector<double> normals_;  // kPairs vectors, feature by feature
};

}  // namespace codband
