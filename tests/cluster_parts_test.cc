// A data directory becomes those of the partitions of a loop, and back: what engines that are
// opened on them know.
#include "codband/server/cluster/cluster_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codband/base/random.h"
#include "codband/cluster/partition_map.h"
#include "codband/engine/engine.h"
#include "codband/engine/name_hash.h"
#include "codband/engine/partition.h"
#include "codband/engine/store_copy.h"
#include "codband/server/admin/findings.h"
#include "codband/server/cluster/cluster_copy.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/server/cluster/shared_catalogue.h"
#include "codband/store/test_support.h"

namespace codband::engine {
namespace {

constexpr int kUsers = 40;
constexpr std::uint64_t kSeed = 3;
constexpr SipKey kSecret{.low = 5, .high = 6};

class ClusterPartsTest : public store::StoreTest {
 protected:
  EngineOptions Options(std::optional<std::uint32_t> partition = {}) const {
    EngineOptions options{.policy = policy_, .dim = 0, .seed = kSeed};
    options.name_secret = kSecret;
    options.exploration_floor = 0;
    options.reward_wait_ms = 24 * 3'600'000;
    options.users_in_memory = 10;  // the others are on disk
    options.checkpoint_events = 60;
    options.partition = partition;
    if (partition) {
      options.share_catalogue = [](CatalogueChange, auto done) { done({}); };
    }
    return options;
  }
  std::unique_ptr<Engine> Serve(const std::filesystem::path& directory,
                                std::optional<std::uint32_t> partition = {}) {
    auto engine = Engine::Open(Open(directory), Options(partition));
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    return std::move(engine).value();
  }

  static std::string User(int number) {
    return number < 0 ? std::string() : "user" + std::to_string(number);
  }
  static RankRequest Request(int user, int visit, const std::string& event = {}) {
    RankRequest request{.event_id = event, .user = User(user)};
    request.context_features = {{visit % 2 == 0 ? "device=phone" : "device=desk", 1},
                                {"hour", (visit % 24) / 24.0}};
    return request;
  }
  // What is expected of each item, in the order of their ids: mean and width.
  static std::vector<double> Rank(Engine& engine, RankRequest request, std::string* action = {},
                                  std::string* event = {}) {
    std::map<std::string, std::array<double, 2>> by_item;
    std::promise<Status> done;
    engine.Rank(
        std::move(request),
        [&](const RankReply& reply) {
          if (action != nullptr) *action = reply.reward_action_id;
          if (event != nullptr) *event = reply.event_id;
          for (const RankedItem& item : reply.ranking) by_item[item.id] = {item.mean, item.width};
        },
        [&](Status status) { done.set_value(std::move(status)); });
    const Status status = done.get_future().get();
    EXPECT_TRUE(status.ok()) << status.ToString();
    std::vector<double> out;
    for (const auto& [id, pair] : by_item) out.insert(out.end(), pair.begin(), pair.end());
    return out;
  }
  static RewardOutcome Reward(Engine& engine, const std::string& event, double value) {
    std::promise<Result<RewardReply>> done;
    engine.Reward(event, value,
                  [&](Result<RewardReply> reply) { done.set_value(std::move(reply)); });
    const auto reply = done.get_future().get();
    EXPECT_TRUE(reply.ok()) << reply.status().ToString();
    return reply.ok() ? reply.value().outcome : RewardOutcome::kUnknown;
  }
  static Status Await(const std::function<void(std::function<void(Status)>)>& start) {
    std::promise<Status> done;
    start([&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  // A shop: items with names, tastes that change, visitors without an id, decisions that wait.
  void Learn(Engine& engine, int visits) {
    std::vector<Item> items;
    for (int i = 0; i < 12; ++i) {
      items.push_back({.id = "item" + std::to_string(i),
                       .features = {},
                       .named = {{"genre=" + std::to_string(i % 3), 1}, {"price", 1.0 + i}},
                       .tags = {"t" + std::to_string(i)}});
    }
    ASSERT_TRUE(Await([&](auto done) { engine.PutItems(items, std::move(done)); }).ok());
    for (int visit = 0; visit < visits; ++visit) {
      const int user = visit % (kUsers + 1) == kUsers ? -1 : visit % (kUsers + 1);
      std::string action;
      const std::string event = "visit" + std::to_string(visit);  // they seed the draws
      Rank(engine, Request(user, visit, event), &action);
      const int item = std::stoi(action.substr(4));
      const int taste = (user + (visit > visits / 2 && user % 4 == 0 ? 1 : 0)) % 3;
      RandomStream random({9, static_cast<std::uint64_t>(visit)}, 77);
      const double reward = (item % 3 == taste ? 1.0 : 0.2) + 0.01 * item + 0.1 * random.Normal();
      ASSERT_EQ(Reward(engine, event, reward), RewardOutcome::kAccepted);
    }
    for (int user = -1; user < 6; ++user) {
      const std::string event = "waits" + std::to_string(user);
      Rank(engine, Request(user, 1, event));
      waiting_.push_back(event);
      const std::string settled = "settled" + std::to_string(user);
      Rank(engine, Request(user, 2, settled));
      ASSERT_EQ(Reward(engine, settled, 0.5), RewardOutcome::kAccepted);
      settled_.push_back(settled);
    }
    ASSERT_TRUE(Await([&](auto done) { engine.Forget("user39", std::move(done)); }).ok());
  }
  // As a server leaves it that was killed: with a log behind the checkpoint.
  std::filesystem::path MakeData(int visits = 900) {
    auto engine = Serve(directory_ / "served");
    Learn(*engine, visits);
    EXPECT_TRUE(engine->Checkpoint().ok());
    for (int visit = 0; visit < 5; ++visit) {
      const std::string event = "last" + std::to_string(visit);
      Rank(*engine, Request(visit, visit, event));
      EXPECT_EQ(Reward(*engine, event, 0.3), RewardOutcome::kAccepted);
    }
    EXPECT_TRUE(engine->Backup(directory_ / "data").ok());
    std::size_t behind = 0;
    EXPECT_TRUE(Open(directory_ / "data")
                    ->Scan(store::Table::kLog, {}, {}, [&](auto, auto) { return ++behind > 0; })
                    .ok());
    EXPECT_GT(behind, 0U);
    return directory_ / "data";
  }
  // The same once more: asking changes what is asked.
  std::unique_ptr<Engine> ServeCopy(const std::filesystem::path& data, const std::string& name) {
    EXPECT_TRUE(CopyAll(*Open(data), *Open(directory_ / name)).ok());
    return Serve(directory_ / name);
  }
  std::filesystem::path Split(const std::filesystem::path& data, store::Partition partitions,
                              const std::string& name) {
    std::filesystem::create_directories(directory_ / name);
    const auto made = server::SplitData(data, partitions, directory_ / name, kSeed);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return directory_ / name;
  }
  std::filesystem::path Join(const std::filesystem::path& backup, store::Partition partitions,
                             const std::string& name) {
    const Status joined = server::JoinData(backup, partitions, directory_ / name,
                                           directory_ / (name + "-scratch"), kSeed);
    EXPECT_TRUE(joined.ok()) << joined.ToString();
    return directory_ / name;
  }
  static store::Partition PartitionOf(const std::string& user, store::Partition partitions) {
    const UserId id = user.empty() ? kNobody : NameHash(kSecret).User(user);
    return cluster::PartitionOf(id, partitions);
  }
  // Sums come in another order, and models are factorised from them anew, where the server has
  // followed them by updates: with prices up to 12 beside a 1 some eight digits are the same.
  static void ExpectSame(Engine& one, Engine& other, int user) {
    for (int visit = 0; visit < 2; ++visit) {
      const auto expected = Rank(one, Request(user, visit));
      const auto found = Rank(other, Request(user, visit));
      ASSERT_EQ(expected.size(), 24U);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-8) << User(user) << " at " << i;
      }
    }
  }
  static std::vector<std::string> Columns(Engine& engine) {
    std::vector<std::string> names;
    for (const ColumnReport& column : engine.Features().columns) names.push_back(column.name);
    return names;
  }
  static std::uint64_t Count(Engine& engine, std::size_t column) {
    return engine.Features().columns[column].count;
  }
  static void ExpectSound(const std::filesystem::path& directory) {
    const auto findings = server::ExamineData(directory);
    ASSERT_TRUE(findings.ok()) << findings.status().ToString();
    const Status sound = server::CheckSound(directory, findings.value());
    EXPECT_TRUE(sound.ok()) << sound.ToString();
  }

  std::string policy_ = "codband";
  std::vector<std::string> waiting_;
  std::vector<std::string> settled_;
};

TEST_F(ClusterPartsTest, PartitionsGoOnWhereTheServerWas) {
  const auto data = MakeData();
  const auto single = ServeCopy(data, "single");
  const auto columns = Columns(*single);
  const EngineStats before = single->Stats();
  EXPECT_GT(before.models, 1U);
  EXPECT_GT(before.changes, 0U);
  for (const store::Partition partitions : {1U, 4U, 16U}) {
    const auto backup = Split(data, partitions, "split" + std::to_string(partitions));
    std::vector<std::unique_ptr<Engine>> parts;
    std::uint64_t users = 0;
    std::uint64_t changes = 0;
    std::uint64_t uses = 0;
    std::uint64_t pending = 0;
    for (store::Partition p = 0; p < partitions; ++p) {
      ExpectSound(server::CopyDirectory(backup, p));
      parts.push_back(Serve(server::CopyDirectory(backup, p), p));
      const EngineStats stats = parts.back()->Stats();
      users += stats.users;
      changes += stats.changes;
      pending += stats.pending;
      uses += Count(*parts.back(), 0);
      EXPECT_EQ(stats.models, before.models);
      EXPECT_EQ(stats.items, before.items);
      EXPECT_EQ(Columns(*parts.back()), columns);
    }
    EXPECT_EQ(users, before.users);
    EXPECT_EQ(changes, before.changes);
    EXPECT_EQ(pending, before.pending);
    EXPECT_EQ(uses, Count(*single, 0));
    for (int user = -1; user < kUsers + 1; ++user) {  // one is forgotten, one is new
      ExpectSame(*single, *parts[PartitionOf(User(user), partitions)], user);
    }
    // Every decision is in one place, that of its user.
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      std::multiset<store::Partition> of_waiting;
      std::multiset<store::Partition> of_settled;
      for (store::Partition p = 0; p < partitions; ++p) {
        if (!parts[p]->FindEvents(waiting_[i], 1).value().empty()) of_waiting.insert(p);
        if (!parts[p]->FindEvents(settled_[i], 1).value().empty()) of_settled.insert(p);
      }
      ASSERT_EQ(of_waiting.size(), 1U);
      ASSERT_EQ(of_settled.size(), 1U);
      if (i > 0) {  // the first is of nobody
        EXPECT_EQ(*of_waiting.begin(), PartitionOf(User(static_cast<int>(i) - 1), partitions));
      }
      EXPECT_EQ(Reward(*parts[*of_waiting.begin()], waiting_[i], 1), RewardOutcome::kAccepted);
      EXPECT_EQ(Reward(*parts[*of_settled.begin()], settled_[i], 1), RewardOutcome::kDuplicate);
    }
    for (const auto& part : parts) EXPECT_TRUE(part->Check().ok()) << part->Check().ToString();
  }
}

TEST_F(ClusterPartsTest, ThereAndBackNothingIsLost) {
  const auto data = MakeData();
  const auto single = ServeCopy(data, "single");
  const EngineStats before = single->Stats();
  for (const store::Partition partitions : {1U, 4U, 16U}) {
    const std::string name = std::to_string(partitions);
    const auto backup = Split(data, partitions, "split" + name);
    // As one of them is if nobody has served it: what the loop has it follows from there.
    const auto back = Join(backup, partitions, "back" + name);
    ExpectSound(back);
    auto whole = Serve(back);
    EXPECT_TRUE(whole->Check().ok()) << whole->Check().ToString();
    const EngineStats after = whole->Stats();
    EXPECT_EQ(after.users, before.users);
    EXPECT_EQ(after.items, before.items);
    EXPECT_EQ(after.models, before.models);
    EXPECT_EQ(after.changes, before.changes);
    EXPECT_EQ(after.pending, before.pending);
    EXPECT_EQ(Columns(*whole), Columns(*single));
    for (std::size_t column = 0; column < Columns(*single).size(); ++column) {
      EXPECT_EQ(Count(*whole, column), Count(*single, column)) << column;
    }
    for (int user = -1; user < kUsers + 1; ++user) ExpectSame(*single, *whole, user);
    const auto item = whole->GetItem("item7");
    ASSERT_TRUE(item.ok());
    EXPECT_EQ(item.value().tags, (std::vector<std::string>{"t7"}));
    const auto one = single->GetUser("user4");
    const auto other = whole->GetUser("user4");
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(other.value().model, one.value().model);
    EXPECT_EQ(other.value().observations, one.value().observations);
    EXPECT_EQ(other.value().changes.size(), one.value().changes.size());
    EXPECT_EQ(whole->GetUser("user39").status().code(), StatusCode::kNotFound);
    for (const std::string& event : waiting_) {
      EXPECT_EQ(Reward(*whole, event, 1), RewardOutcome::kAccepted) << event;
    }
    for (const std::string& event : settled_) {
      EXPECT_EQ(Reward(*whole, event, 1), RewardOutcome::kDuplicate) << event;
    }
  }
}

// A name that one user alone has sent must not come into the log of the loop, which is for good.
TEST_F(ClusterPartsTest, TheLoopHearsNoNameOfOneUserAlone) {
  {
    auto engine = Serve(directory_ / "served");
    Learn(*engine, 100);
    RankRequest request = Request(3, 1);
    request.user_features = {{"diary=secret", 1}};
    Rank(*engine, std::move(request));
    ASSERT_TRUE(engine->Backup(directory_ / "data").ok());
  }
  std::filesystem::create_directories(directory_ / "split");
  const auto made = server::SplitData(directory_ / "data", 2, directory_ / "split", kSeed);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_NE(made.value().find("1 names of features"), std::string::npos) << made.value();
  const auto loop = server::LoopFile::Read(directory_ / "split");
  ASSERT_TRUE(loop.ok());
  features::ColumnSpace columns;
  for (std::size_t i = 1; i < loop.value().shared.size(); ++i) {
    EXPECT_EQ(loop.value().shared[i].find("secret"), std::string::npos);
    const auto changes = DecodeChanges(loop.value().shared[i]);
    ASSERT_TRUE(changes.ok());
    ASSERT_TRUE(server::TakeColumns(changes.value(), columns).ok());
  }
  auto part = Serve(server::CopyDirectory(directory_ / "split", 1), 1);
  EXPECT_EQ(columns.size(), part->Features().columns.size());
}

// What partitions have learned together in the end is what the directory has that is made of them,
// into another number of partitions too.
TEST_F(ClusterPartsTest, AnotherNumberOfPartitionsKeepsDecisionsAndUsers) {
  const auto data = MakeData(300);
  const auto four = Split(data, 4, "four");
  std::vector<std::string> events;
  {
    auto part = Serve(server::CopyDirectory(four, 3), 3);
    for (int user = 0; user < kUsers; ++user) {
      if (PartitionOf(User(user), 4) != 3) continue;
      std::string event;
      Rank(*part, Request(user, 7), nullptr, &event);
      EXPECT_EQ(PartitionOfEvent(event), 3U);
      events.push_back(event);
    }
  }
  ASSERT_GT(events.size(), 2U);
  const auto joined = Join(four, 4, "joined");
  const auto single = ServeCopy(joined, "single");
  const auto sixteen = Split(joined, 16, "sixteen");
  std::vector<std::unique_ptr<Engine>> parts;
  for (store::Partition p = 0; p < 16; ++p) {
    parts.push_back(Serve(server::CopyDirectory(sixteen, p), p));
  }
  for (int user = -1; user < kUsers; ++user) {
    ExpectSame(*single, *parts[PartitionOf(User(user), 16)], user);
  }
  for (const std::string& event : events) {
    std::vector<store::Partition> has;
    for (store::Partition p = 0; p < 16; ++p) {
      if (!parts[p]->FindEvents(event, 1).value().empty()) has.push_back(p);
    }
    ASSERT_EQ(has.size(), 1U) << event;
    EXPECT_GE(has[0], 12U);  // where the users of the last quarter are
    EXPECT_EQ(Reward(*parts[has[0]], event, 1), RewardOutcome::kAccepted);
  }
}

TEST_F(ClusterPartsTest, WhatCannotBeSplitIsRefused) {
  policy_ = "linucb";
  const auto data = MakeData(100);
  std::filesystem::create_directories(directory_ / "split");
  const auto made = server::SplitData(data, 4, directory_ / "split", kSeed);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(made.status().message().find("the policy 'linucb' cannot be taken apart"),
            std::string::npos)
      << made.status().message();
}

}  // namespace
}  // namespace codband::engine
