#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "codband/base/status.h"
#include "codband/eval/logged_decisions.h"
#include "codband/policy/policy.h"

namespace codband::eval {

// A target policy, whose value is estimated from the decisions of another one. It sees the events
// in their order: at each it is asked for its probabilities first and learns the reward of the
// logged choice afterwards. So its probabilities at an event are a function of earlier events
// alone, and what is estimated is the mean value of the policy while it learns. Not thread-safe.
class Target {
 public:
  explicit Target(std::string name) : name_(std::move(name)) {}
  virtual ~Target() = default;

  const std::string& name() const { return name_; }
  // Whether it is the policy that made the log: every weight is 1.
  virtual bool on_policy() const { return false; }

  // The probability with which it chooses each candidate of event i; they add up to 1. NaN where
  // unknown, which is allowed for the logged policy only.
  virtual void Chances(const LoggedDecisions& log, std::size_t i, std::span<double> out) = 0;
  // Learns the reward of the logged choice at event i. Follows Chances of the same event.
  virtual void Learn(const LoggedDecisions&, std::size_t) {}

 private:
  std::string name_;
};

// The policy that made the log.
std::unique_ptr<Target> MakeLoggedTarget();

// Always the first candidate: what the product would do without a recommender.
std::unique_ptr<Target> MakeFirstTarget();

// Every candidate with the same probability.
std::unique_ptr<Target> MakeUniformTarget();

// Fixed weights by (group, action), both by name; the group "" holds for all groups without an
// entry of their own. Candidates are chosen in proportion to their weights, those that are not in
// the table never. kInvalidArgument names the first event (counted from 1) whose candidates all
// have weight 0.
using ChanceTable = std::map<std::pair<std::string, std::string>, double>;
Result<std::unique_ptr<Target>> MakeTableTarget(std::string name, const ChanceTable& table,
                                                const LoggedDecisions& log);

struct PolicyTargetOptions {
  std::uint64_t seed = 1;
  double floor = 0;  // share of choices made uniformly at random
};

// An untrained policy of the registry. At event i it ranks the candidates with the key {seed, i}
// (Policy::Rank), then learns from the logged choice as if it had been its own: a decision under
// the model that it would have used, with the mean, width, score and propensity that it gave to
// that candidate. Precondition: its dimension is the log's.
std::unique_ptr<Target> MakePolicyTarget(std::string name, std::unique_ptr<Policy> policy,
                                         const PolicyTargetOptions& options);

}  // namespace codband::eval
