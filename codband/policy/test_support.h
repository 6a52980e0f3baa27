#pragma once

// A small simulated world for tests of policies: a few true parameters, users who each have one of
// them, and visits that depend on the seed alone.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/ground_truth.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/registry.h"

namespace codband {

class TestWorld final : public GroundTruth {
 public:
  static constexpr std::size_t kDim = 5;
  static constexpr std::size_t kUsers = 6;
  static constexpr std::size_t kArms = 7;
  static constexpr double kNoise = 0.1;

  explicit TestWorld(std::uint64_t seed) : seed_(seed), parameters_(3) {
    RandomStream random({seed, 0}, 500);
    for (auto& parameter : parameters_) {
      parameter.resize(kDim);
      random.FillNormal(parameter);
    }
  }

  std::size_t model_count() const override { return parameters_.size(); }
  std::span<const double> parameter(std::size_t model) const override { return parameters_[model]; }
  // User u starts with parameter u mod 3 and changes to the next one after 40 visits of each user.
  std::size_t model_of(UserId user) const override {
    return (user + step_ / (40 * kUsers)) % parameters_.size();
  }
  double hazard() const override { return 1.0 / 40; }

  PolicyContext context() const { return {.dim = kDim, .noise = kNoise, .truth = this}; }

  // One visit of the next user in turn, with its reward.
  LearnOutcome Step(Policy& policy, LearnMemo* memo = nullptr) {
    const EventKey key{seed_, step_};
    const UserId user = step_ % kUsers;
    const std::vector<double> arms = Arms();
    const Decision decision = policy.Choose(user, {arms, kDim}, key);
    const LearnOutcome outcome = policy.Learn(decision, Reward(decision), key, memo);
    ++step_;
    return outcome;
  }

  std::vector<double> Arms() const {
    RandomStream random({seed_, step_}, 501);
    std::vector<double> arms(kArms * kDim);
    random.FillNormal(arms);
    return arms;
  }
  double Reward(const Decision& decision) const {
    RandomStream random({seed_, step_}, 502);
    return linalg::Dot(decision.features, parameter(model_of(decision.user))) +
           kNoise * random.Normal();
  }

  std::uint64_t step() const { return step_; }
  void set_step(std::uint64_t step) { step_ = step; }

 private:
  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  std::vector<std::vector<double>> parameters_;
};

inline std::unique_ptr<Policy> MakeOrDie(std::string_view spec, const PolicyContext& context) {
  return std::move(MakePolicy(spec, context)).value();
}

// What a checkpoint would hold.
inline std::string Saved(const Policy& policy) {
  ByteWriter out;
  policy.SaveState(out);
  return out.Take();
}

// An archive in memory, which counts how often it is read.
struct MapArchive final : UserArchive {
  bool Read(UserId user, std::string& bytes) const override {
    ++reads;
    const auto found = records.find(user);
    if (found == records.end()) return false;
    bytes = found->second;
    return true;
  }
  std::map<UserId, std::string> records;
  mutable int reads = 0;
};

}  // namespace codband
