#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/policy.h"

namespace codband::eval {

// "confidence = 2, expected a number from 0.5 to 0.9999"
Status WrongNumber(std::string_view field, double value, std::string_view expected);

// Numbers names in the order of their first appearance. Not thread-safe for writing.
class NameTable {
 public:
  // The number of the name, which gets the next one if it is new.
  std::uint32_t Add(std::string_view name);
  const std::string& name(std::uint32_t id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<std::string> names_;
};

// One logged decision, without its candidates.
struct LoggedEvent {
  UserId user = 0;
  std::int64_t time_ms = 0;  // of the decision
  std::uint32_t group = 0;   // such as a position on the page; see MakeTableTarget
  std::uint32_t chosen = 0;  // index among the candidates
  double propensity = 1;     // the probability with which it was chosen
  double reward = 0;
};

// The candidates of a decision, and the probability of each if the log has them all. Borrows.
struct LoggedOffer {
  std::span<const std::uint32_t> actions;      // numbers of `actions` in LoggedDecisions
  std::span<const double> features;            // actions.size() × dim, row-major
  std::span<const double> probabilities = {};  // empty: only the propensity is known
};

// Logged decisions with their rewards, in the order of the log: the input of off-policy evaluation.
// Neighbours with the same candidates share their memory. Const use from any thread.
class LoggedDecisions {
 public:
  // Precondition: 0 < dim ≤ kMaxFeatures. At most so many bytes are held in memory.
  explicit LoggedDecisions(std::size_t dim,
                           std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

  // kInvalidArgument names the field, its value and what was expected, and changes nothing: a
  // propensity outside [kLeastPropensity, 1], a reward or a feature that is no number within
  // ±kLargestNumber, a chosen index that is no candidate, probabilities outside [0, 1], that do not
  // add up to 1, or that contradict the propensity (by more than kTolerance each).
  Status Add(const LoggedEvent& event, const LoggedOffer& offer);
  // kInvalidArgument if there is no room for a decision with so many candidates.
  Status CheckRoom(std::size_t candidates) const;
  static constexpr double kTolerance = 0.01;  // services round, some to single precision
  // Nobody draws so rarely; the weights of smaller ones would not be numbers.
  static constexpr double kLeastPropensity = 1e-12;

  // The same decisions in the order of their times; equal times keep their order.
  void SortByTime();

  std::size_t dim() const { return dim_; }
  std::size_t size() const { return records_.size(); }
  const LoggedEvent& event(std::size_t i) const { return records_[i].event; }
  std::size_t candidate_count(std::size_t i) const { return records_[i].count; }
  std::span<const std::uint32_t> actions(std::size_t i) const;
  ArmsView arms(std::size_t i) const;
  std::span<const double> probabilities(std::size_t i) const;  // empty: not logged

  NameTable users;
  NameTable groups;
  NameTable action_names;

 private:
  struct Record {
    LoggedEvent event;
    std::size_t count = 0;          // candidates
    std::size_t actions = 0;        // where they begin
    std::size_t features = 0;       // where they begin
    std::size_t probabilities = 0;  // where they begin; kNone: not logged
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Status Check(const LoggedEvent& event, const LoggedOffer& offer) const;

  std::size_t dim_;
  std::size_t most_bytes_;
  std::vector<Record> records_;
  std::vector<std::uint32_t> actions_;
  std::vector<ItemId> items_;  // the same numbers, as policies see them
  std::vector<double> features_;
  std::vector<double> probabilities_;
};

}  // namespace codband::eval
