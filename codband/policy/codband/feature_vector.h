#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "codband/linalg/packed.h"

namespace codband {

// A feature vector as the models see it, intercept included, on the stack.
class FeatureVector {
 public:
  // Its values are for the caller to fill in. Precondition: size ≤ linalg::kMaxDimension.
  explicit FeatureVector(std::size_t size) : size_(size) {}

  std::span<double> values() { return {values_.data(), size_}; }
  operator std::span<const double>() const { return {values_.data(), size_}; }

 private:
  std::array<double, linalg::kMaxDimension> values_;
  std::size_t size_;
};

}  // namespace codband
