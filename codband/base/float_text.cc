#include "codband/base/float_text.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace codband {
namespace {

// Numbers from 1e-4 up to this are written here.
constexpr double kLargest = 1e8;
constexpr double kLeast = 1e-4;

constexpr std::array<double, 14> kPowers = {1,   1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                            1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
constexpr int kDigits = 9;                          // always enough for a float
constexpr double kSmallest = 1e8, kTooLarge = 1e9;  // numbers of so many digits

// What rounding may be off by, many times over: products are of numbers below 2e9.
constexpr double kMargin = 1e-5;

// A number as that many digits and how many of them stand before the point; at most 0: there are
// zeros after it.
struct Decimal {
  std::uint32_t digits;
  int before_point;
};

enum class Fit { kNone, kOne, kUnsure };

// Whether a multiple of the step is within `half` of the number; then the closest. Not sure where
// rounding could decide, and which it is.
Fit FitOf(double number, double half, double step, double inverse, double& closest) {
  closest = static_cast<double>(static_cast<std::int64_t>(number * inverse + 0.5)) * step;
  const double off = std::abs(closest - number);
  if (off > half + kMargin) return Fit::kNone;
  return off > half - kMargin || off > step / 2 - kMargin ? Fit::kUnsure : Fit::kOne;
}

// The shortest decimal between the middles to the neighbours of the number, of several the closest.
// With nine digits there are several, so that a multiple of 1000 is the only one of its length.
// False where rounding could decide.
bool FindShortest(float value, Decimal& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffU) == 0) return false;  // its neighbours are not equally far
  const auto exponent = static_cast<int>(bits >> 23U) - 127;
  const double exact = value;
  // ⌊log10 2^exponent⌋, which is that of the number or one less.
  int before_point = ((exponent * 1233) >> 12) + 1;
  double scaled = exact * kPowers[static_cast<std::size_t>(kDigits - before_point)];
  if (scaled >= kTooLarge)
    scaled = exact * kPowers[static_cast<std::size_t>(kDigits - ++before_point)];
  // Half of the distance between neighbours, at the same scale: 2^(exponent - 24).
  const double half =
      std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 24 + 1023) << 52U) *
      kPowers[static_cast<std::size_t>(kDigits - before_point)];
  // Mostly eight or nine digits are needed.
  double closest = 0;
  Fit fit = FitOf(scaled, half, 10, 0.1, closest);
  if (fit == Fit::kNone) {
    fit = FitOf(scaled, half, 1, 1, closest);
  } else {
    for (const auto& [step, inverse] : {std::pair{1e2, 1e-2}, {1e3, 1e-3}}) {
      double shorter = 0;
      const Fit fits = FitOf(scaled, half, step, inverse, shorter);
      if (fits == Fit::kNone) break;
      fit = fits;
      closest = shorter;
    }
  }
  if (fit != Fit::kOne) return false;
  if (closest >= kTooLarge) {
    out = {.digits = static_cast<std::uint32_t>(kSmallest), .before_point = before_point + 1};
  } else {
    out = {.digits = static_cast<std::uint32_t>(closest), .before_point = before_point};
  }
  return true;
}

// Two digits for each number below 100.
constexpr std::array<char, 200> kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

void WriteDigits(std::uint32_t number, char* to) {
  for (int i = kDigits - 2; i > 0; i -= 2) {
    std::memcpy(to + i, &kPairs[2 * std::size_t{number % 100}], 2);
    number /= 100;
  }
  to[0] = static_cast<char>('0' + number);
}

}  // namespace

char* WriteShortest(char* at, float value) {
  const float size = std::abs(value);
  Decimal decimal;
  if (!(size >= kLeast && size < kLargest) || !FindShortest(size, decimal)) {
    return fmt::format_to(at, FMT_COMPILE("{}"), value);
  }
  if (value < 0) *at++ = '-';
  char digits[16] = {};
  WriteDigits(decimal.digits, digits);
  int count = kDigits;
  while (digits[count - 1] == '0') --count;
  const int whole = decimal.before_point;
  if (whole <= 0) {
    std::memcpy(at, "0.000000", 8);
    at += 2 - whole;
    std::memcpy(at, digits, kDigits);
    return at + count;
  }
  std::memcpy(at, digits, kDigits);
  if (count <= whole) return at + whole;
  at[whole] = '.';
  std::memcpy(at + whole + 1, digits + whole, static_cast<std::size_t>(count - whole));
  return at + count + 1;
}

}  // namespace codband
