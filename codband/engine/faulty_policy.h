#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "codband/policy/paged_users.h"
#include "codband/policy/policy.h"
#include "codband/policy/registry.h"

namespace codband::engine {

// A policy for tests that fails where a test wants it to: `fault(reward)` is called after the
// reward was learned in part, and may throw.
class FaultyPolicy final : public Policy {
 public:
  using Fault = std::function<void(double reward)>;

  FaultyPolicy(std::unique_ptr<Policy> inner, Fault fault)
      : Policy(inner->dim()), inner_(std::move(inner)), fault_(std::move(fault)) {
    set_spec(inner_->spec());
  }
  // For EngineOptions::make_policy.
  static auto Maker(Fault fault) {
    return [fault = std::move(fault)](std::string_view spec,
                                      std::size_t dim) -> Result<std::unique_ptr<Policy>> {
      auto inner = MakePolicy(spec, {.dim = dim});
      if (!inner.ok()) return inner.status();
      return std::unique_ptr<Policy>(
          std::make_unique<FaultyPolicy>(std::move(inner).value(), fault));
    };
  }

  bool Forget(UserId user) override { return inner_->Forget(user); }
  std::size_t model_count() const override { return inner_->model_count(); }
  void DoSaveState(ByteWriter& out) const override {
    // Without the number of features, which is written already.
    ByteWriter state;
    inner_->SaveState(state);
    for (const char byte : state.bytes().substr(2 * sizeof(std::uint64_t))) {
      out.U8(static_cast<std::uint8_t>(byte));
    }
  }
  void DoLoadState(ByteReader& in) override { inner_->LoadState(in); }
  std::vector<ModelDescription> DescribeModels() const override { return inner_->DescribeModels(); }
  std::optional<UserDescription> DescribeUser(UserId user) const override {
    return inner_->DescribeUser(user);
  }
  PagedUsers* paged_users() override { return inner_->paged_users(); }

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override {
    inner_->Choose(user, arms, key, decision);
    return Propensity::Sampled();
  }
  void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const override {
    inner_->Rank(user, arms, key, 0, ranking);
  }
  void DoGrow(std::size_t dim) override { inner_->Grow(dim); }
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) override {
    const LearnOutcome outcome = inner_->Learn(decision, reward, key, memo);
    fault_(reward);
    return outcome;
  }

  std::unique_ptr<Policy> inner_;
  Fault fault_;
};

}  // namespace codband::engine
