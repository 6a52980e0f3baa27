#include "codband/eval/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "codband/base/check.h"

namespace codband::eval {
namespace {

class LoggedTarget final : public Target {
 public:
  LoggedTarget() : Target("logged") {}
  bool on_policy() const override { return true; }
  void Chances(const LoggedDecisions& log, std::size_t i, std::span<double> out) override {
    const std::span<const double> logged = log.probabilities(i);
    if (logged.empty()) {
      std::ranges::fill(out, std::numeric_limits<double>::quiet_NaN());
    } else {
      std::ranges::copy(logged, out.begin());
    }
  }
};

class FirstTarget final : public Target {
 public:
  FirstTarget() : Target("first") {}
  void Chances(const LoggedDecisions&, std::size_t, std::span<double> out) override {
    std::ranges::fill(out, 0);
    out.front() = 1;
  }
};

class UniformTarget final : public Target {
 public:
  UniformTarget() : Target("uniform") {}
  void Chances(const LoggedDecisions&, std::size_t, std::span<double> out) override {
    std::ranges::fill(out, 1 / static_cast<double>(out.size()));
  }
};

class TableTarget final : public Target {
 public:
  TableTarget(std::string name, const ChanceTable& table, const LoggedDecisions& log)
      : Target(std::move(name)), actions_(log.action_names.size()) {
    const std::size_t groups = std::max<std::size_t>(1, log.groups.size());
    weights_.assign(groups * actions_, 0);
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::string group = g < log.groups.size() ? log.groups.name(g) : "";
      const auto own = table.lower_bound({group, ""});
      const bool listed = own != table.end() && own->first.first == group;
      for (std::uint32_t a = 0; a < actions_; ++a) {
        const auto found = table.find({listed ? group : "", log.action_names.name(a)});
        if (found != table.end()) weights_[g * actions_ + a] = found->second;
      }
    }
  }

  // The weights of the candidates, and their sum.
  double Weights(const LoggedDecisions& log, std::size_t i, std::span<double> out) const {
    const std::span<const std::uint32_t> actions = log.actions(i);
    const std::size_t row = log.event(i).group * actions_;
    for (std::size_t c = 0; c < actions.size(); ++c) out[c] = weights_[row + actions[c]];
    return std::accumulate(out.begin(), out.end(), 0.0);
  }

  void Chances(const LoggedDecisions& log, std::size_t i, std::span<double> out) override {
    const double sum = Weights(log, i, out);
    for (double& chance : out) chance /= sum;
  }

 private:
  std::size_t actions_;
  std::vector<double> weights_;  // groups × actions
};

class PolicyTarget final : public Target {
 public:
  PolicyTarget(std::string name, std::unique_ptr<Policy> policy, const PolicyTargetOptions& options)
      : Target(std::move(name)), policy_(std::move(policy)), options_(options) {}

  void Chances(const LoggedDecisions& log, std::size_t i, std::span<double> out) override {
    policy_->Rank(log.event(i).user, log.arms(i), Key(i), options_.floor, ranking_);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = ranking_.arms[c].probability;
  }

  void Learn(const LoggedDecisions& log, std::size_t i) override {
    const LoggedEvent& event = log.event(i);
    Decision& decision = ranking_.decision;
    const Ranking::Arm& arm = ranking_.arms[event.chosen];
    decision.arm = event.chosen;
    decision.mean = arm.mean;
    decision.width = arm.width;
    decision.score = arm.score;
    decision.propensity = arm.probability;
    const std::span<const double> features = log.arms(i).arm(event.chosen);
    decision.features.assign(features.begin(), features.end());
    decision.item = log.arms(i).item(event.chosen);
    policy_->Learn(decision, event.reward, Key(i));
  }

 private:
  EventKey Key(std::size_t i) const { return {.seed = options_.seed, .event = i}; }

  std::unique_ptr<Policy> policy_;
  PolicyTargetOptions options_;
  Ranking ranking_;
};

}  // namespace

std::unique_ptr<Target> MakeLoggedTarget() { return std::make_unique<LoggedTarget>(); }
std::unique_ptr<Target> MakeFirstTarget() { return std::make_unique<FirstTarget>(); }
std::unique_ptr<Target> MakeUniformTarget() { return std::make_unique<UniformTarget>(); }

Result<std::unique_ptr<Target>> MakeTableTarget(std::string name, const ChanceTable& table,
                                                const LoggedDecisions& log) {
  auto target = std::make_unique<TableTarget>(std::move(name), table, log);
  std::vector<double> weights;
  for (std::size_t i = 0; i < log.size(); ++i) {
    weights.resize(log.candidate_count(i));
    if (target->Weights(log, i, weights) > 0) continue;
    return Status::InvalidArgument(
        fmt::format("no candidate of event {} has a probability, expected one above 0", i + 1));
  }
  return std::unique_ptr<Target>(std::move(target));
}

std::unique_ptr<Target> MakePolicyTarget(std::string name, std::unique_ptr<Policy> policy,
                                         const PolicyTargetOptions& options) {
  return std::make_unique<PolicyTarget>(std::move(name), std::move(policy), options);
}

}  // namespace codband::eval
