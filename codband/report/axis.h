#pragma once

#include <string>
#include <vector>

namespace codband::report {

enum class Scale { kLinear, kLog };

// Whether a value can be plotted: finite, not absurdly large, and positive on a log scale. Charts
// leave a gap for any other value.
bool Drawable(double value, Scale scale);

struct Tick {
  double value = 0;
  std::string label;
};

// A range of values, mapped to [0, 1]. A plain value; pure functions.
class Axis {
 public:
  // An axis that covers [low, high], widened to round ends. A linear scale includes zero if it is
  // near: positive data whose minimum is below half of its maximum, or the mirror image of that. A
  // single value, or bounds that cannot be plotted, give a usable range around them; the range is
  // never empty.
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
