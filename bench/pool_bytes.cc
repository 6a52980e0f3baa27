// How many bytes partitions write to learn together, for each reward: P instances of codband under
// the rule by which a node publishes, merges and imports (server/cluster/pool_keeper.h), in
// simulated time, without nodes and without a database.
//
//   pool_bytes [PARTITIONS [REWARDS A SECOND [REWARDS [ITEMS]]]]
//
// ITEMS: 1 if the arms are items with ids, 0 if they have features alone. 1000 users with ten
// tastes, who do not change; arms are ten of a thousand, with 25 features.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/policy/registry.h"
#include "codband/policy/shared_pool.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/sim/synthetic.h"

namespace codband {
namespace {

using server::PoolKeeper;

struct Flags {
  std::size_t partitions = 16;
  std::size_t rate = 1000;  // rewards a second
  std::size_t rewards = 150'000;
  bool items = true;
};

struct Bytes {
  std::size_t registers = 0;
  std::size_t pools = 0;
  std::size_t logs = 0;  // what partitions import, which is an entry of their log
  std::size_t exchanges = 0;
};

class Loop {
 public:
  Loop(std::size_t partitions, std::size_t dim, double noise) : members_(partitions) {
    for (std::size_t p = 0; p < members_.size(); ++p) {
      auto policy = MakePolicy("codband", {.dim = dim, .noise = noise});
      CODBAND_CHECK(policy.ok());
      members_[p].policy = std::move(policy).value();
      Pool(p).SetPartition(static_cast<std::uint32_t>(p));
    }
  }

  void Play(const sim::Visit& visit, std::size_t dim, EventKey key) {
    Member& member = members_[visit.user % members_.size()];
    const Decision decision =
        member.policy->Choose(visit.user, {visit.arms, dim, visit.items}, key);
    member.policy->Learn(decision, visit.rewards[decision.arm], key);
    member.learned = true;
  }

  // What a node does every kPeriodMs.
  void Step(std::int64_t now_ms) {
    for (std::size_t p = 0; p < members_.size(); ++p) Publish(p, now_ms);
    if (fresh_.empty() || now_ms < next_merge_ms_ + MoreToWaitMs()) return;
    fresh_.clear();
    auto merged = Pool(0).Merge(shelf_.registers(), last_);
    CODBAND_CHECK(merged.ok());
    std::size_t most = 0;
    for (auto& [partition, import] : merged.value().imports) {
      bytes_.pools += import.size();
      bytes_.logs += import.size();
      most = std::max(most, import.size());
      CODBAND_CHECK(Pool(partition).Import(import).ok());
    }
    ++bytes_.exchanges;
    last_ = std::move(merged.value().imports.begin()->second);
    next_merge_ms_ = now_ms + SpacingMs(most);
  }

  Bytes Take() { return std::exchange(bytes_, {}); }
  std::size_t models() const { return members_.front().policy->model_count(); }

 private:
  struct Member {
    std::unique_ptr<Policy> policy = {};
    bool learned = false;
    std::int64_t published_ms = 0;
    std::int64_t next_ms = 0;
  };

  SharedPool& Pool(std::size_t p) { return *members_[p].policy->shared_pool(); }
  std::int64_t SpacingMs(std::size_t bytes) const {
    const auto all = static_cast<std::int64_t>(1000 * members_.size() * bytes);
    return std::clamp(all / PoolKeeper::kBytesPerSecond, PoolKeeper::kPeriodMs,
                      PoolKeeper::kAtTheLatestMs);
  }
  std::int64_t MoreToWaitMs() const {
    const std::int64_t spacing_ms = SpacingMs(last_.size());
    const auto fresh = static_cast<std::int64_t>(fresh_.size());
    const auto all = static_cast<std::int64_t>(members_.size());
    return std::min(spacing_ms * (all - fresh) / fresh, PoolKeeper::kAtTheLatestMs - spacing_ms);
  }
  void Publish(std::size_t p, std::int64_t now_ms) {
    Member& member = members_[p];
    if (now_ms < member.next_ms || !member.learned) return;
    const bool always = now_ms - member.published_ms >= PoolKeeper::kAtTheLatestMs;
    if (!always && !Pool(p).HasNews()) return;
    std::string bytes = Pool(p).Publish(static_cast<std::uint64_t>(now_ms));
    bytes_.registers += bytes.size();
    member.learned = false;
    member.published_ms = now_ms;
    member.next_ms = now_ms + SpacingMs(bytes.size());
    CODBAND_CHECK(shelf_.Put(std::move(bytes)).ok());
    fresh_.insert(p);
  }

  std::vector<Member> members_;
  RegisterShelf shelf_;
  std::string last_;
  std::set<std::size_t> fresh_;  // whose registers are in no pool yet
  std::int64_t next_merge_ms_ = 0;
  Bytes bytes_;
};

void Run(const Flags& flags) {
  constexpr std::size_t kUsers = 1000;
  constexpr std::size_t kNever = 1'000'000;
  const sim::SyntheticOptions options{
      .users = kUsers,
      .rounds = flags.rewards / kUsers,
      .period_min = kNever,
      .period_max = kNever,
      .item_effects = flags.items ? std::optional(0.0) : std::nullopt};
  const auto environment = std::move(sim::MakeSynthetic(options, 1)).value();
  Loop loop(flags.partitions, environment->dim(), environment->noise());
  fmt::print("{} partitions, {} rewards a second, arms {}; bytes a reward\n", flags.partitions,
             flags.rate, flags.items ? "are items" : "have features alone");
  fmt::print(
      "| rewards | registers | pools | logs | exchanges | models |\n|---|---|---|---|---|---|\n");
  const std::size_t between = std::max<std::size_t>(1, flags.rate * PoolKeeper::kPeriodMs / 1000);
  const std::size_t row = flags.rewards / 6;
  sim::Visit visit;
  std::uint64_t event = 0;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    environment->StartRound(round);
    for (std::size_t slot = 0; slot < kUsers; ++slot) {
      environment->MakeVisit(slot, visit);
      loop.Play(visit, environment->dim(), {1, event++});
      if (event % between == 0) loop.Step(static_cast<std::int64_t>(1000 * event / flags.rate));
      if (event % row != 0) continue;
      const Bytes bytes = loop.Take();
      fmt::print("| {} | {} | {} | {} | {} | {} |\n", event, bytes.registers / row,
                 bytes.pools / row, bytes.logs / row, bytes.exchanges, loop.models());
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace codband

int main(int count, char** values) {
  codband::Flags flags;
  const auto number = [&](int i, std::size_t otherwise) {
    return count > i ? std::strtoul(values[i], nullptr, 10) : otherwise;
  };
  flags.partitions = number(1, flags.partitions);
  flags.rate = number(2, flags.rate);
  flags.rewards = number(3, flags.rewards);
  flags.items = number(4, 1) != 0;
  codband::Run(flags);
}
