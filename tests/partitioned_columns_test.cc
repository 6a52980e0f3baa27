// Partitions of one loop where every name has a column: the loop gives columns out, and all
// partitions have the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "codband/engine/sightings.h"
#include "tests/partitioned_engine_testing.h"

namespace codband::engine {
namespace {

using features::ColumnSpace;
using Named = std::vector<features::NamedFeature>;

class PartitionedColumnsTest : public PartitionedEngineTest {
 protected:
  PartitionedColumnsTest() { Begin(256); }

  void Begin(std::size_t most) {
    dim_ = 0;
    columns_ = {.columns = most};
    catalogue_ = std::make_unique<server::SharedCatalogue>(log_, LogSink(),
                                                           features::ColumnLimits::Serving(most));
    ASSERT_TRUE(server::FindLoopIdentity(log_, 0).ok());
  }
  Served Serve(const std::string& node, store::Partition partition) {
    Served served = TakeOver(node, partition);
    const Status status = catalogue_->Attach(partition, *served.engine);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return served;
  }
  static Status Put(Engine& engine, const std::string& id, Named named) {
    return Wait<Status>([&](auto done) {
      engine.PutItems({{.id = id, .features = {}, .named = std::move(named), .tags = {}}}, done);
    });
  }
  template <typename T, typename Start>
  static T Wait(const Start& start) {
    std::promise<T> promise;
    start([&promise](T value) { promise.set_value(std::move(value)); });
    return promise.get_future().get();
  }
  // What is expected of each item, by its id, and how sure.
  struct Reply {
    std::map<std::string, std::pair<double, double>> items;
    std::string event;
    std::string action;
  };
  static Reply RankUnder(Engine& engine, const std::string& user, Named context,
                         const std::string& event = {}, bool durable = true) {
    Reply out;
    const auto done = std::make_shared<std::promise<Status>>();
    engine.Rank(
        {.event_id = event, .user = user, .context_features = std::move(context)},
        [&](const RankReply& reply) {
          out.event = reply.event_id;
          out.action = reply.reward_action_id;
          for (const RankedItem& item : reply.ranking) {
            out.items[item.id] = {item.mean, item.width};
          }
        },
        [done](Status status) { done->set_value(std::move(status)); });
    if (durable) {
      const Status status = done->get_future().get();
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    return out;
  }
  // In the morning news are clicked, in the evening music.
  static void Visit(Engine& engine, const std::string& user, bool morning) {
    const Reply reply = RankUnder(engine, user, {{morning ? "time=morning" : "time=evening", 1}});
    const bool liked = reply.action == (morning ? "news" : "music");
    const auto rewarded = Wait<Result<RewardReply>>(
        [&](auto done) { engine.Reward(reply.event, liked ? 1 : 0, done); });
    ASSERT_TRUE(rewarded.ok()) << rewarded.status().ToString();
  }
  static void PutShop(Engine& engine) {
    for (const std::string id : {"news", "music", "toys"}) {
      ASSERT_TRUE(Put(engine, id, {{"category=" + id, 1}, {"price", 0.25}}).ok());
    }
  }
  static std::vector<std::string> Names(Engine& engine) {
    std::vector<std::string> names;
    for (const ColumnReport& column : engine.Features().columns) names.push_back(column.name);
    return names;
  }
  static bool Knows(Engine& engine, const std::string& name) {
    return std::ranges::count(Names(engine), name) == 1;
  }
  static bool IsSharing(Engine& engine, const std::string& item) {
    bool shares = false;
    std::promise<Status> done;
    engine.Rank(
        {.candidates = {{.id = item}}, .explain = true},
        [&](const RankReply& reply) {
          for (const auto& each : reply.explanation->contributions) {
            shares |= each.feature.starts_with("shared ");
          }
        },
        [&](Status status) { done.set_value(std::move(status)); });
    EXPECT_TRUE(done.get_future().get().ok());
    return shares;
  }
  // What the loop has given out, from its log alone.
  std::vector<std::string> NamesOfLog() {
    ColumnSpace space;
    for (const CatalogueChange& change : Log()) {
      for (const ColumnSpace::Addition& each : change.columns) {
        EXPECT_TRUE(space.Append(each).ok());
      }
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < space.size(); ++i) names.push_back(space.NameOf(i));
    return names;
  }
  std::vector<CatalogueChange> Log() {
    std::vector<CatalogueChange> all;
    log_.ReadShared(2, std::size_t{1} << 30, [&](Result<std::vector<store::LogFrame>> frames) {
      for (const store::LogFrame& frame : frames.value()) {
        auto changes = DecodeChanges(frame.bytes);
        std::ranges::move(changes.value(), std::back_inserter(all));
      }
    });
    return all;
  }
  // Both learn, each from its own users.
  void PlayTogether(Served& zero, Served& one, int visits) {
    for (int i = 0; i < visits; ++i) {
      Visit(*zero.engine, "zero" + std::to_string(i % 6), i / 6 % 2 == 0);
      Visit(*one.engine, "one" + std::to_string(i % 6), i / 6 % 2 == 0);
    }
  }
  static std::vector<std::pair<std::string, std::string>> Uses(Engine& engine) {
    std::vector<std::pair<std::string, std::string>> uses;
    for (const ColumnReport& each : engine.Features().columns) {
      uses.emplace_back(
          each.name, fmt::format("{} {} {} {:a}", each.count, each.min, each.max, each.importance));
    }
    return uses;
  }
  // As a user who is known and one who is not are answered. Nothing of it is durable.
  static std::vector<std::map<std::string, std::pair<double, double>>> Answers(Engine& engine) {
    std::vector<std::map<std::string, std::pair<double, double>>> answers;
    for (const std::string user : {"one1", "one4", "stranger"}) {
      for (const std::string time : {"time=morning", "time=evening"}) {
        answers.push_back(RankUnder(engine, user, {{time, 1}}, user + time, false).items);
      }
    }
    return answers;
  }
};

TEST_F(PartitionedColumnsTest, AllPartitionsHaveTheSameColumnsInTheSameOrder) {
  Served zero = Serve("one", 0);
  Served one = Serve("one", 1);
  PutShop(*zero.engine);
  ASSERT_TRUE(Put(*one.engine, "shoes", {{"category=shoes", 1}, {"size", 44}}).ok());
  // Each has names of its own, and both ask for some at the same time.
  const auto visit = [](Engine& engine, const std::string& side) {
    for (int i = 0; i < 60; ++i) {
      RankUnder(engine, side + std::to_string(i % 5),
                {{fmt::format("both={}", i % 7), 1}, {fmt::format("{}={}", side, i % 3), 1}});
    }
  };
  std::thread other([&] { visit(*one.engine, "right"); });
  visit(*zero.engine, "left");
  other.join();
  const auto all_there = [](Engine& engine) {
    std::set<std::string> wanted = {"price", "size", "left=0", "left=2", "right=0", "right=2"};
    for (int i = 0; i < 7; ++i) wanted.insert(fmt::format("both={}", i));
    for (const std::string& name : Names(engine)) wanted.erase(name);
    return wanted.empty();
  };
  EXPECT_TRUE(Becomes([&] { return all_there(*zero.engine) && all_there(*one.engine); }));
  EXPECT_TRUE(Becomes([&] {
    const std::vector<std::string> names = Names(*zero.engine);
    return names == Names(*one.engine) && names == NamesOfLog();
  }));
  catalogue_->Detach(0);
  catalogue_->Detach(1);
  const std::vector<std::string> names = Names(*one.engine);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  // A node that has nothing but the logs knows them as well.
  const Served next = TakeOver("two", 1);
  EXPECT_EQ(Names(*next.engine), names);
}

// Another node, with a copy and a checkpoint or with nothing but the log, goes on bit for bit.
TEST_F(PartitionedColumnsTest, AContextThatOneLearnsTheOtherKnowsAndItsNextOwnersBitForBit) {
  Served zero = Serve("one", 0);
  Served one = Serve("one", 1);
  PutShop(*zero.engine);
  {
    server::PoolKeeper keeper(log_, 2, {});
    keeper.Attach(zero.claim, *zero.engine);
    keeper.Attach(one.claim, *one.engine);
    for (int i = 0; i < 240; ++i)
      Visit(*zero.engine, "zero" + std::to_string(i % 8), i / 8 % 2 == 0);
    const auto knows = [&] {
      auto morning = RankUnder(*one.engine, "stranger", {{"time=morning", 1}}).items;
      auto evening = RankUnder(*one.engine, "stranger", {{"time=evening", 1}}).items;
      return morning["news"].first > morning["music"].first + 0.3 &&
             evening["music"].first > evening["news"].first + 0.3;
    };
    EXPECT_TRUE(Becomes(knows));
    PlayTogether(zero, one, 60);
    EXPECT_TRUE(one.engine->Checkpoint().ok());
    PlayTogether(zero, one, 20);
    EXPECT_TRUE(Becomes([&] { return keeper.facts().age_seconds == 0; }));
    keeper.Detach(0);
    keeper.Detach(1);
  }
  EXPECT_TRUE(Becomes([&] { return Names(*zero.engine) == Names(*one.engine); }));
  catalogue_->Detach(0);
  catalogue_->Detach(1);
  EXPECT_EQ(one.engine->Stats().quarantined, 0U);
  const auto uses = Uses(*one.engine);
  const Served next = TakeOver("two", 1);  // replays the log from its beginning
  const auto answers = Answers(*one.engine);
  EXPECT_EQ(Answers(*next.engine), answers);
  EXPECT_EQ(Uses(*next.engine), uses);
}

// The pool has columns of which a partition has not heard yet.
TEST_F(PartitionedColumnsTest, APartitionThatIsBehindLearnsFromThoseThatAreAhead) {
  Served zero = Serve("one", 0);
  Served one = Serve("one", 1);
  PutShop(*zero.engine);
  catalogue_->Detach(1);
  for (int i = 0; i < 30; ++i) {  // beyond the features that models begin with
    ASSERT_TRUE(Put(*zero.engine, fmt::format("item{}", i), {{fmt::format("f{}", i), 1}}).ok());
  }
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(DeleteItem(*zero.engine, fmt::format("item{}", i)).ok());
  {
    server::PoolKeeper keeper(log_, 2, {});
    keeper.Attach(zero.claim, *zero.engine);
    keeper.Attach(one.claim, *one.engine);
    for (int i = 0; i < 120; ++i) Visit(*zero.engine, "zero" + std::to_string(i % 6), true);
    EXPECT_TRUE(
        Becomes([&] { return keeper.facts().age_seconds == 0 && one.engine->Stats().dim > 30; }));
    PlayTogether(zero, one, 10);
    EXPECT_EQ(Names(*one.engine).size(), 4U);
    // What items are worth does not depend on the columns that it lacks.
    auto news = RankUnder(*one.engine, "stranger", {}).items;
    EXPECT_GT(news["news"].first, news["music"].first + 0.1);
    ASSERT_TRUE(catalogue_->Attach(1, *one.engine).ok());
    PlayTogether(zero, one, 30);
    EXPECT_TRUE(Becomes([&] { return keeper.facts().age_seconds == 0; }));
    keeper.Detach(0);
    keeper.Detach(1);
  }
  EXPECT_TRUE(Becomes([&] { return Names(*zero.engine) == Names(*one.engine); }));
  catalogue_->Detach(0);
  catalogue_->Detach(1);
  EXPECT_EQ(one.engine->Stats().quarantined, 0U);
  const Served next = TakeOver("two", 1);
  EXPECT_EQ(Answers(*next.engine), Answers(*one.engine));
}

TEST_F(PartitionedColumnsTest, ARankingNeverWaitsForColumns) {
  Served zero = Serve("one", 0);
  PutShop(*zero.engine);
  catalogue_->Detach(0);  // nobody will ever give columns
  for (int i = 0; i < 20; ++i) Visit(*zero.engine, "u" + std::to_string(i % 5), i % 2 == 0);
  EXPECT_FALSE(Knows(*zero.engine, "time=morning"));
  EXPECT_EQ(zero.engine->Stats().rewards_accepted, 20U);
  EXPECT_TRUE(catalogue_->Attach(0, *zero.engine).ok());
  for (int i = 0; i < 20; ++i) Visit(*zero.engine, "u" + std::to_string(i % 5), i % 2 == 0);
  EXPECT_TRUE(Becomes([&] { return Knows(*zero.engine, "time=morning"); }));
  catalogue_->Detach(0);
}

// What is in the log of the loop stays there: it has nothing that one user alone has sent.
TEST_F(PartitionedColumnsTest, NobodyHearsOfWhatOneUserAloneHasSent) {
  Served zero = Serve("one", 0);
  PutShop(*zero.engine);
  for (int i = 0; i < 2 * Sightings::kDecisions; ++i) {
    RankUnder(*zero.engine, "ann", {{"city=Bath", 1}, {"segments[0]", 3}, {"segments[1]", 4}});
    RankUnder(*zero.engine, i % 2 == 0 ? "bob" : "eve", {{"city=Rome", 1}});
    RankUnder(*zero.engine, "", {{"campaign=may", 1}});  // nobody's
  }
  EXPECT_TRUE(Becomes(
      [&] { return Knows(*zero.engine, "city=Rome") && Knows(*zero.engine, "campaign=may"); }));
  for (const CatalogueChange& change : Log()) {
    for (const ColumnSpace::Addition& each : change.columns) {
      EXPECT_EQ(each.name.find("Bath"), std::string::npos);
      EXPECT_EQ(each.name.find("segments"), std::string::npos);
    }
  }
  catalogue_->Detach(0);
}

TEST_F(PartitionedColumnsTest, BeyondTheLimitTheSameColumnsAreSharedByAll) {
  constexpr std::size_t kMost = 40;
  Begin(kMost);
  Served zero = Serve("one", 0);
  Served one = Serve("one", 1);
  for (int i = 0; i < 200; ++i) {
    Engine& engine = i % 2 == 0 ? *zero.engine : *one.engine;
    RankUnder(engine, "", {{fmt::format("word={}", i % 50), 1}}, {}, false);
    if (i == 0) PutShop(engine);
  }
  const auto limits = features::ColumnLimits::Serving(kMost);
  const auto flooded = [&](Engine& engine) { return engine.Features().sharing.size() == 1; };
  EXPECT_TRUE(Becomes([&] {
    for (int i = 0; i < 50; ++i) {
      RankUnder(*zero.engine, "", {{fmt::format("word={}", i), 1}});
      RankUnder(*one.engine, "", {{fmt::format("word={}", i), 1}});
    }
    return flooded(*zero.engine) && flooded(*one.engine);
  }));
  EXPECT_EQ(zero.engine->Features().sharing, std::vector<std::string>{"word=*"});
  // A quarter, less those that the catalogue has, is kept for it.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Put(*one.engine, fmt::format("new{}", i), {{fmt::format("f{}", i), 1}}).ok());
  }
  EXPECT_TRUE(Becomes([&] { return Names(*zero.engine) == Names(*one.engine); }));
  const EngineStats stats = zero.engine->Stats();
  EXPECT_EQ(stats.columns, kMost);
  EXPECT_EQ(stats.shared_columns, limits.shared());
  EXPECT_TRUE(Knows(*zero.engine, "f0"));
  EXPECT_FALSE(Knows(*zero.engine, "f19"));
  const auto sharing = zero.engine->Features().sharing;
  EXPECT_EQ(std::ranges::count(sharing, "f19"), 1);
  EXPECT_EQ(sharing, one.engine->Features().sharing);
  // It goes on to share where a node has a larger limit, until it is put again.
  EXPECT_TRUE(IsSharing(*zero.engine, "new19"));
  catalogue_->Detach(0);
  catalogue_->Detach(1);
  columns_.columns = 2 * kMost;
  Served next = TakeOver("two", 0);
  EXPECT_TRUE(IsSharing(*next.engine, "new19"));
  catalogue_ = std::make_unique<server::SharedCatalogue>(
      log_, LogSink(), features::ColumnLimits::Serving(2 * kMost));
  ASSERT_TRUE(catalogue_->Attach(0, *next.engine).ok());
  ASSERT_TRUE(Put(*next.engine, "new19", {{"f19", 1}}).ok());
  EXPECT_FALSE(IsSharing(*next.engine, "new19"));
  catalogue_->Detach(0);
}

// Requests ask before they have heard of what others were given.
TEST_F(PartitionedColumnsTest, ABurstOfNewNamesGetsNoMoreThanTheEighth) {
  Served one = Serve("a", 0);
  Served other = Serve("b", 1);
  ASSERT_TRUE(Put(*one.engine, "x", {{"price", 1}}).ok());
  log_.FailShared({StatusCode::kUnavailable, "away"});
  for (int i = 0; i < 20; ++i) {
    Named names;
    for (int j = 0; j < 4; ++j) names.push_back({fmt::format("session{}={}", j, i), 1});
    names.push_back({fmt::format("vector{}[0]", i), 1});
    names.push_back({fmt::format("vector{}[1]", i), 1});
    RankUnder(i % 2 == 0 ? *one.engine : *other.engine, "", names);
  }
  log_.FailShared({});
  const std::size_t eighth = features::ColumnLimits::Serving(256).at_once;
  const auto given = [&] { return Names(*one.engine).size() - 1; };  // without the price
  ASSERT_TRUE(Becomes([&] { return given() > eighth - 2; })) << given();
  ASSERT_TRUE(Put(*other.engine, "y", {{"colour", 1}}).ok());  // after all that was asked for
  ASSERT_TRUE(Becomes([&] { return Knows(*one.engine, "colour"); }));
  EXPECT_LE(given() - 1, eighth);
  // An array has all of its columns or none.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Knows(*one.engine, fmt::format("vector{}[0]", i)),
              Knows(*one.engine, fmt::format("vector{}[1]", i)));
  }
}

// Each goes on from what the other one has given.
TEST_F(PartitionedColumnsTest, TwoNodesGiveOutColumnsInOneOrder) {
  Served zero = Serve("one", 0);
  server::SharedCatalogue other(log_, LogSink(), features::ColumnLimits::Serving(256));
  auto mine = std::exchange(catalogue_, nullptr);
  const auto share = [&](server::SharedCatalogue& catalogue, int from) {
    for (int i = 0; i < 40; ++i) {
      CatalogueChange change;
      change.put = {{.id = fmt::format("i{}", i + from),
                     .features = {},
                     .named = {{fmt::format("f{}", i + from), 1}, {"price", 1}},
                     .tags = {}}};
      EXPECT_TRUE(Wait<Status>([&](auto done) { catalogue.Change(std::move(change), done); }).ok());
    }
  };
  std::thread there([&] { share(other, 20); });
  share(*mine, 0);
  there.join();
  EXPECT_TRUE(Becomes([&] { return Names(*zero.engine).size() == 61; }));
  EXPECT_EQ(Names(*zero.engine), NamesOfLog());
  mine->Detach(0);
}

TEST_F(PartitionedColumnsTest, ColumnsThatDoNotFollowAreRefused) {
  Served zero = Serve("one", 0);
  PutShop(*zero.engine);
  catalogue_->Detach(0);
  const auto follow = [&](std::uint64_t first, std::vector<ColumnSpace::Addition> columns) {
    CatalogueChange change;
    change.columns = std::move(columns);
    change.first_column = first;
    return Wait<Status>(
        [&](auto done) { zero.engine->partition()->Follow(100, {std::move(change)}, done); });
  };
  const auto before = Names(*zero.engine);
  EXPECT_EQ(follow(5, {{.name = "x"}}).message(), "columns of the loop begin at 5, expected 4");
  EXPECT_EQ(follow(4, {{.name = "x"}, {.name = "price"}}).code(), StatusCode::kCorruption);
  EXPECT_EQ(Names(*zero.engine), before);
  EXPECT_TRUE(follow(4, {{.name = "x"}}).ok());
  EXPECT_TRUE(Becomes([&] { return Knows(*zero.engine, "x"); }));
}

TEST_F(PartitionedColumnsTest, ALoopThatGivesEveryNameAColumnDoesSoForGood) {
  EXPECT_EQ(server::FindLoopIdentity(log_, 0).value().dim, 0U);
  EXPECT_EQ(server::FindLoopIdentity(log_, 8).status().message(),
            "features.dimension: is 8, but this loop gives every name a column, for good");
  // Programs of before cannot read it: there each partition would give columns out by itself.
  const std::string bytes = server::FindLoopIdentity(log_, 0).value().Encode();
  EXPECT_EQ(bytes.size(), (server::LoopIdentity{.dim = 3}).Encode().size() + 8);
  std::string newer = bytes;
  newer.back() = 7;
  EXPECT_FALSE(server::LoopIdentity::Decode(newer).ok());
}

}  // namespace
}  // namespace codband::engine
