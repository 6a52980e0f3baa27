#pragma once

#include <string>
#include <vector>

namespace codband::report {

enum class Scale { kLinear, kLog };

// True if a value can be drawn: finite, of sane size, and above zero on a log scale. Charts leave a
// gap for every other value.
bool Drawable(double value, Scale scale);

struct Tick {
  double value = 0;
  std::string label;
};

// A range of values and its map onto 0…1. A plain value; pure functions.
class Axis {
 public:
  // An axis that holds [low, high], widened a little to round ends. On a linear scale zero is
  // included when it is near (positive data reaching below half of its maximum, or the mirror of
  // it). A single value, or bounds that are not drawable, give a usable range around them; never
  // an empty one.
  Axis(Scale scale, double low, double high);

  Scale scale() const { return scale_; }
  double low() const { return low_; }
  double high() const { return high_; }

  // 0 at low(), 1 at high(), clamped to [0, 1]. Precondition: Drawable(value, scale()).
  double Position(double value) const;

  // At most about `most` ticks (>= 2) at round values inside the range, ascending: multiples of 1,
  // 2 or 5 times a power of ten on a linear scale; decades on a log scale, with 2 and 5 between
  // them when the range is short. Large values are grouped or shortened: 20,000, 1.5M, 10⁹.
  std::vector<Tick> Ticks(int most) const;

 private:
  Scale scale_;
  double low_;
  double high_;
};

}  // namespace codband::report
