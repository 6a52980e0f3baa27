// Which users are in memory, when checkpoints are made and when the program starts again changes no
// result: a policy that is paged and restarted all the time equals its undisturbed twin to the bit.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/policy/paged_users.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kArmDim = 3;

// A policy whose users live in an archive, as the engine keeps them.
class PagedCopy {
 public:
  PagedCopy(std::string_view spec, const UserRoom& room) : spec_(spec), room_(room) {
    policy_ = MakeOrDie(spec_, {.dim = kArmDim});
    users().SetArchive(&archive_);
  }

  Policy& policy() { return *policy_; }
  void Forget(UserId user) {
    policy_->Forget(user);
    forgotten_.push_back(user);
  }
  void Checkpoint() {
    for (const UserId user : forgotten_) archive_.records.erase(user);
    forgotten_.clear();
    users().SaveChangedUsers(
        [&](UserId user, std::string bytes) { archive_.records[user] = std::move(bytes); });
    users().MarkUsersSaved();
    users().EvictUsers(room_);
  }
  void Restart() {
    Checkpoint();
    const std::string saved = Shared();
    const std::size_t dim = policy_->dim();
    policy_ = MakeOrDie(spec_, {.dim = kArmDim});
    ByteReader in(saved);
    users().LoadShared(in);
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    ASSERT_EQ(policy_->dim(), dim);
    users().SetArchive(&archive_);
  }
  std::string Shared() {
    ByteWriter out;
    users().SaveShared(out);
    return out.Take();
  }
  const std::map<UserId, std::string>& Records() {
    Checkpoint();
    return archive_.records;
  }

 private:
  PagedUsers& users() { return *policy_->paged_users(); }

  std::string spec_;
  UserRoom room_;
  std::unique_ptr<Policy> policy_;
  MapArchive archive_;
  std::vector<UserId> forgotten_;
};

// A world of few users who change, items whose features change, rewards that come late, users and
// items that are forgotten.
class Traffic {
 public:
  Traffic(std::uint64_t seed, bool grows)
      : random_({.seed = seed, .event = 0}, 520), grows_(grows) {
    for (auto& item : items_) item = {random_.Normal(), random_.Normal(), random_.Normal()};
  }

  // What happens next, in both.
  void Step(PagedCopy& paged, PagedCopy& twin) {
    ++event_;
    const std::uint64_t what = random_.Below(40);
    if (what < 2) {
      const UserId user = random_.Below(kUsers);
      paged.Forget(user);
      twin.Forget(user);
    } else if (what == 2) {
      const ItemId item = 1 + random_.Below(items_.size());
      EXPECT_EQ(paged.policy().ForgetItem(item), twin.policy().ForgetItem(item));
    } else if (what == 3) {
      items_[random_.Below(items_.size())][0] = static_cast<double>(event_ % 16);
    } else if (what == 4 && grows_ && paged.policy().dim() < 12) {
      paged.policy().Grow(paged.policy().dim() + 1);
      twin.policy().Grow(twin.policy().dim() + 1);
    } else {
      Visit(paged);
      while (waiting_.size() > random_.Below(5)) Reward(paged, twin);
    }
  }

 private:
  static constexpr std::uint64_t kUsers = 8;

  void Visit(PagedCopy& paged) {
    const std::size_t dim = paged.policy().dim();
    std::vector<double> rows;
    std::vector<ItemId> ids;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      rows.insert(rows.end(), items_[i].begin(), items_[i].end());
      for (std::size_t j = kArmDim; j < dim; ++j) rows.push_back(j % 5 == event_ % 5 ? 1 : 0);
      ids.push_back(i + 1);
    }
    const EventKey key{.seed = 7, .event = event_};
    waiting_.emplace_back(paged.policy().Choose(random_.Below(kUsers), {rows, dim, ids}, key), key);
  }

  void Reward(PagedCopy& paged, PagedCopy& twin) {
    const auto [decision, key] = waiting_.front();
    waiting_.pop_front();
    // One of two tastes, and the other one every now and then.
    const double sign = (decision.user + key.event / 160) % 2 == 0 ? 1 : -1;
    const double reward = sign * decision.features[1] + 0.1 * random_.Normal();
    const LearnOutcome a = paged.policy().Learn(decision, reward, key);
    const LearnOutcome b = twin.policy().Learn(decision, reward, key);
    EXPECT_EQ(a.change_detected, b.change_detected);
    EXPECT_EQ(a.after, b.after);
  }

  RandomStream random_;
  bool grows_;
  std::uint64_t event_ = 0;
  std::vector<std::vector<double>> items_ = std::vector<std::vector<double>>(6);
  std::deque<std::pair<Decision, EventKey>> waiting_;
};

struct Case {
  std::string_view name;
  std::string_view spec;
  bool grows;
};

class PagingTest : public testing::TestWithParam<Case> {};

TEST_P(PagingTest, PagingAndRestartsChangeNoResult) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    // Two users, or those who fit into so many bytes: from none to all of the eight.
    const UserRoom few{.users = 2};
    const UserRoom small{.bytes = 2000 * (seed - 1)};
    PagedCopy paged(GetParam().spec, seed % 2 == 0 ? few : small);
    PagedCopy twin(GetParam().spec, {});
    Traffic traffic(seed, GetParam().grows);
    RandomStream random({.seed = seed, .event = 1}, 521);
    for (int step = 0; step < 800; ++step) {
      traffic.Step(paged, twin);
      if (random.Below(9) == 0) paged.Checkpoint();
      if (random.Below(12) == 0) paged.Restart();
      ASSERT_TRUE(paged.Shared() == twin.Shared()) << "seed " << seed << ", step " << step;
      if (random.Below(40) != 0) continue;
      ASSERT_TRUE(paged.Records() == twin.Records()) << "seed " << seed << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PagingTest,
                         testing::Values(Case{"codband", "codband", false},
                                         Case{"growing", "codband", true},
                                         Case{"paper", "codband:paper", false},
                                         Case{"hawkes", "codband:prior=hawkes", false}),
                         [](const testing::TestParamInfo<Case>& param) {
                           return std::string(param.param.name);
                         });

}  // namespace
}  // namespace codband
