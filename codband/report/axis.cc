#include "codband/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/text.h"

namespace codband::report {
namespace {

// A larger value is an error upstream, and differences of such values could overflow.
constexpr double kLargest = 1e100;
// Absorbs rounding where a quotient should be a whole number.
constexpr double kSlack = 1e-9;

// The smallest 1, 2 or 5 times a power of ten that is at least `value`.
double RoundUp125(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value) + kSlack));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value <= factor * power * (1 + kSlack)) return factor * power;
  }
  return 10 * power;
}

double RoundDown125(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value) + kSlack));
  for (const double factor : {5.0, 2.0}) {
    if (value * (1 + kSlack) >= factor * power) return factor * power;
  }
  return power;
}

std::string Minus(std::string text) {
  return !text.empty() && text.front() == '-' ? "−" + text.substr(1) : text;
}

// 5e-7 → "5×10⁻⁷".
std::string Scientific(double value) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + kSlack));
  const std::string mantissa = fmt::format("{:.4g}", value / std::pow(10.0, exponent));
  std::string power = exponent < 0 ? "10⁻" : "10";
  for (const char c : fmt::format("{}", std::abs(exponent))) power += kDigits[c - '0'];
  if (mantissa == "1") return power;
  if (mantissa == "-1") return "−" + power;
  return Minus(mantissa) + "×" + power;
}

std::string LinearLabel(double value, double step, double largest) {
  const auto fixed = [step](double v, double unit) {
    const int decimals =
        std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - kSlack)), 0, 15);
    return Minus(GroupThousands(fmt::format("{:.{}f}", v / unit, decimals)));
  };
  if (std::abs(value) < step * 1e-6) return "0";
  if (largest >= 1e9 || step < 1e-6) return Scientific(value);
  if (largest >= 1e6 && step >= 1e4) return fixed(value, 1e6) + "M";
  if (largest >= 1e5 && step >= 1e3) return fixed(value, 1e3) + "k";
  return fixed(value, 1);
}

std::string LogLabel(double value) {
  if (value >= 0.999e9 || value < 0.99e-4) return Scientific(value);
  if (value >= 0.999e6) return fmt::format("{:.4g}M", value / 1e6);
  return value >= 999 ? FormatNumber(value) : fmt::format("{:.4g}", value);
}

double LinearStep(double low, double high, int most) {
  return RoundUp125((high - low) / std::max(1, most - 1));
}

}  // namespace

bool Drawable(double value, Scale scale) {
  return std::isfinite(value) && std::abs(value) <= kLargest &&
         (scale == Scale::kLinear || value >= 1 / kLargest);
}

Axis::Axis(Scale scale, double low, double high) : scale_(scale), low_(low), high_(high) {
  if (!Drawable(low, scale) || !Drawable(high, scale) || low > high) {
    low_ = scale == Scale::kLog ? 1 : 0;
    high_ = scale == Scale::kLog ? 10 : 1;
    return;
  }
  if (scale == Scale::kLog) {
    low_ = RoundDown125(low);
    high_ = RoundUp125(high);
    if (high_ < 1.5 * low_) {
      low_ = RoundDown125(low_ / 2);
      high_ = RoundUp125(high_ * 2);
    }
    return;
  }
  // A range too narrow to tell its ticks apart is treated as a single value.
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low <= 1e-10 * size || high - low < 1 / kLargest) {
    const double margin = size < 1 / kLargest ? 1 : size / 2;
    low_ = size < 1 / kLargest ? 0 : low - margin;
    high_ = high + margin;
  }
  if (low_ > 0 && low_ <= high_ / 2) low_ = 0;
  if (high_ < 0 && high_ >= low_ / 2) high_ = 0;
  const double grain = LinearStep(low_, high_, 6) / 5;
  low_ = grain * std::floor(low_ / grain + kSlack);
  high_ = grain * std::ceil(high_ / grain - kSlack);
}

double Axis::Position(double value) const {
  const double position = scale_ == Scale::kLog ? std::log(value / low_) / std::log(high_ / low_)
                                                : (value - low_) / (high_ - low_);
  return std::clamp(position, 0.0, 1.0);
}

std::vector<Tick> Axis::Ticks(int most) const {
  std::vector<Tick> ticks;
  if (scale_ == Scale::kLinear) {
    const double step = LinearStep(low_, high_, most);
    const double largest = std::max(std::abs(low_), std::abs(high_));
    const double first = std::ceil(low_ / step - kSlack);
    const int count = static_cast<int>(std::floor(high_ / step + kSlack) - first);
    for (int i = 0; i <= count; ++i) {
      const double value = (first + i) * step;
      ticks.push_back({value, LinearLabel(value, step, largest)});
    }
    return ticks;
  }
  const int first = static_cast<int>(std::floor(std::log10(low_) + kSlack));
  const int last = static_cast<int>(std::floor(std::log10(high_) + kSlack));
  const bool between = 3 * std::log10(high_ / low_) + 1 <= most + kSlack;
  const int stride = std::max(1, (last - first + most) / most);
  for (int decade = first; decade <= last; decade += between ? 1 : stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, decade);
      const bool inside = value >= low_ * (1 - kSlack) && value <= high_ * (1 + kSlack);
      if (inside && (between || factor == 1.0)) ticks.push_back({value, LogLabel(value)});
    }
  }
  // A range with a single decade is labelled at its two ends.
  if (ticks.size() < 2) ticks = {{low_, LogLabel(low_)}, {high_, LogLabel(high_)}};
  return ticks;
}

}  // namespace codband::report
