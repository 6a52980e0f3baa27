#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codband/policy/policy.h"

namespace codband::engine {

// Who chose what was shown.
enum class Source : std::uint8_t {
  kPolicy = 0,
  kFloor = 1,     // the exploration floor, uniformly at random
  kBaseline = 2,  // the first action: what the product would show anyway
};

// Of Mode and of Source, as the API has them.
inline constexpr const char* kModeNames[] = {"online", "apprentice", "logging_only"};
inline constexpr const char* kSourceNames[] = {"policy", "floor", "baseline"};

// Numbers whose mean is of interest.
struct Moments {
  std::uint64_t count = 0;
  double sum = 0;
  double squares = 0;

  void Add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  Moments& operator+=(const Moments& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
    return *this;
  }
  bool operator==(const Moments&) const = default;

  // The mean with its normal interval of 95%. Nothing for fewer than two numbers.
  struct Interval {
    double mean = 0, low = 0, high = 0;
  };
  std::optional<Interval> Estimate() const;
};

// What happened in a stretch of time, by the wall clock at which it became durable. Additive.
struct Activity {
  static constexpr std::size_t kModes = 3;    // of Mode
  static constexpr std::size_t kSources = 3;  // of Source

  std::uint64_t decisions = 0;
  Moments rewards[kModes][kSources] = {};              // defaulted ones included
  std::uint64_t defaulted = 0;                         // of these: no reward came
  std::uint64_t duplicate = 0, late = 0, unknown = 0;  // rewards that changed nothing
  std::uint64_t compared = 0, agreed = 0;  // not online: the policy would have shown the same
  // Of each rewarded decision an unbiased estimate of what another choice would have brought, from
  // its propensity and the model's expectations (doubly robust; docs/evaluation.md): always the
  // first action, and any action with the same chance. Only where every action had a chance.
  Moments baseline, uniform;
  Moments delay_s;  // from a decision to its reward, without defaulted ones

  Moments all_rewards() const;
  Activity& operator+=(const Activity& other);
  bool operator==(const Activity&) const = default;
};

// How users were spread over groups at the end of a stretch of time, and who changed in it.
struct GroupActivity {
  std::uint64_t changes = 0;
  std::uint64_t users = 0;
  std::vector<std::pair<ModelId, std::uint64_t>> groups = {};  // users of the largest, most first

  // `later` comes after this one.
  GroupActivity& operator+=(const GroupActivity& later);
  bool operator==(const GroupActivity&) const = default;
};

// A curve: one point for each step in which something happened.
struct SeriesReport {
  std::int64_t step_ms = 0;
  struct Point {
    std::int64_t time_ms = 0;  // its begin, a multiple of the step
    Activity activity = {};
    GroupActivity groups = {};
  };
  std::vector<Point> points = {};  // in the order of time
};

}  // namespace codband::engine
