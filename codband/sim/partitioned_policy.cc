#include "codband/sim/partitioned_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/base/sip_hash.h"
#include "codband/policy/shared_pool.h"

namespace codband::sim {
namespace {

class PartitionedPolicy final : public Policy {
 public:
  PartitionedPolicy(const PartitionOptions& options, std::vector<std::unique_ptr<Policy>> policies)
      : Policy(policies.front()->dim()),
        options_(options),
        policies_(std::move(policies)),
        published_(policies_.size(), 0) {
    set_spec(policies_.front()->spec());
    for (std::size_t p = 0; p < policies_.size(); ++p) {
      Pool(p).SetPartition(static_cast<std::uint32_t>(p));
    }
  }

  bool Forget(UserId user) override { return Of(user).Forget(user); }
  bool ForgetItem(ItemId item) override {
    bool known = false;
    for (const auto& policy : policies_) known |= policy->ForgetItem(item);
    return known;
  }

  // As the partition sees it that knows of the most.
  std::size_t model_count() const override {
    std::size_t most = 0;
    for (const auto& policy : policies_) most = std::max(most, policy->model_count());
    return most;
  }

 private:
  struct Pending {
    std::uint64_t due;
    SharedPool::Merged pool;
  };

  SharedPool& Pool(std::size_t p) { return *policies_[p]->shared_pool(); }

  // By the high bits of a hash of the user.
  std::size_t PartitionOf(UserId user) const {
    ByteWriter bytes;
    bytes.U64(user);
    const std::uint64_t high = SipHash({}, bytes.bytes()) >> 32;
    return static_cast<std::size_t>(high * policies_.size() >> 32);
  }
  Policy& Of(UserId user) { return *policies_[PartitionOf(user)]; }
  const Policy& Of(UserId user) const { return *policies_[PartitionOf(user)]; }

  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override {
    Of(user).Choose(user, arms, key, decision);
    return Propensity::Sampled();
  }
  void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const override {
    Of(user).Rank(user, arms, key, 0, ranking);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) override {
    const LearnOutcome outcome = Of(decision.user).Learn(decision, reward, key, memo);
    ++visits_;
    Publish();
    while (!pending_.empty() && pending_.front().due <= visits_) {
      for (std::size_t p = 0; p < policies_.size(); ++p) {
        const auto import = pending_.front().pool.imports.find(static_cast<std::uint32_t>(p));
        if (import == pending_.front().pool.imports.end()) continue;
        const Status status = Pool(p).Import(import->second);
        CODBAND_CHECK(status.ok());
      }
      pending_.pop_front();
    }
    return outcome;
  }

  void Publish() {
    bool any = false;
    for (std::size_t p = 0; p < policies_.size(); ++p) {
      const std::uint64_t since = visits_ - published_[p];
      if (since < options_.publish_min) continue;
      if (since < options_.publish_max && !Pool(p).HasNews()) continue;
      const auto put = shelf_.Put(Pool(p).Publish(visits_));
      CODBAND_CHECK(put.ok());
      published_[p] = visits_;
      any = true;
    }
    if (!any) return;
    auto merged = Pool(0).Merge(shelf_.registers(), last_import_);
    CODBAND_CHECK(merged.ok());
    last_import_ = merged.value().imports.begin()->second;
    pending_.push_back({visits_ + options_.pool_delay, std::move(merged).value()});
  }

  void DoGrow(std::size_t dim) override {
    for (const auto& policy : policies_) policy->Grow(dim);
  }
  void DoSaveState(ByteWriter& out) const override {
    for (const auto& policy : policies_) policy->SaveState(out);
  }
  void DoLoadState(ByteReader& in) override {
    in.Fail("state", "of partitions in a simulation cannot be loaded");
  }

  PartitionOptions options_;
  std::vector<std::unique_ptr<Policy>> policies_;
  std::vector<std::uint64_t> published_;  // when, by partition
  RegisterShelf shelf_;
  std::string last_import_;
  std::deque<Pending> pending_;
  std::uint64_t visits_ = 0;
};

}  // namespace

Result<std::unique_ptr<Policy>> MakePartitioned(const PartitionOptions& options,
                                                const MakeOne& make) {
  if (options.partitions == 1) return make();
  std::vector<std::unique_ptr<Policy>> policies;
  for (std::size_t p = 0; p < options.partitions; ++p) {
    auto policy = make();
    if (!policy.ok()) return policy.status();
    if (policy.value()->shared_pool() == nullptr) {
      return Status::InvalidArgument(
          fmt::format("policy = {}, expected one that shares what it learns: partitions = {}",
                      policy.value()->spec(), options.partitions));
    }
    policies.push_back(std::move(policy).value());
  }
  return std::unique_ptr<Policy>(std::make_unique<PartitionedPolicy>(options, std::move(policies)));
}

}  // namespace codband::sim
