// Machines of PostgreSQL are killed under real nodes and clients, and Patroni fails over: nothing
// that was acknowledged is lost, and nothing counts twice. How often is in the environment variable
// PATRONI_KILLS: of the primary, of the standby, of everything.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cluster_traffic.h"
#include "tests/commit_probe.h"
#include "tests/patroni_cluster.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

constexpr int kClients = 3;
constexpr double kMostMore = 5;  // seconds
// Of a node: six that wait for commits and as many that were given up, one that listens, one that
// looks what has become of them, and one that is just being ended.
constexpr int kMostSessions = 15;

struct Kills {
  int primary = 20;
  int standby = 20;
  int everything = 10;
};

Kills ReadKills() {
  Kills kills;
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* text = std::getenv("PATRONI_KILLS")) {
    std::istringstream(text) >> kills.primary >> kills.standby >> kills.everything;
  }
  return kills;
}

class ServePatroniTest : public ServeClusterTest {
 protected:
  void SetUp() override {
    if (!PatroniCluster::IsInstalled()) {
      FAIL() << "Patroni and etcd are not installed: run scripts/setup.sh --slow";
    }
    MakeRoot();
    // In full it takes longer than an event is remembered otherwise.
    settings_ = {"durability.checkpoint_events=50", "log.level=error", "rewards.wait_seconds=7200"};
    database_servers_ = std::make_unique<PatroniCluster>();
    ASSERT_TRUE(database_servers_->Run("CREATE DATABASE loop"));
    dsn_ = database_servers_->Dsn("loop");
    ASSERT_TRUE(database_servers_->Run("CREATE TABLE probe (at timestamptz)", "loop"));
    for (const std::string name : {"a", "b"}) {
      nodes_.push_back(StartNode(name));
      ASSERT_TRUE(nodes_.back()->listens());
      ports_.push_back(nodes_.back()->port());
    }
  }
  void TearDown() override {
    nodes_.clear();
    database_servers_.reset();
    ServeClusterTest::TearDown();
  }

  using Choose = std::function<std::vector<std::size_t>(const PatroniCluster::Roles&)>;
  struct When {
    // What died before is back when the next one dies: in strict mode PostgreSQL itself cannot
    // commit without two machines.
    bool all_are_back = false;
    bool start_at_once = false;  // what was killed
  };
  // Kills, waits until all clients are answered, starts what was killed again. A client may wait
  // kMostMore seconds longer than any other client of PostgreSQL, whose commit tells what Patroni
  // takes.
  void Repeat(const char* what, int times, ClusterTraffic& traffic, const Choose& choose,
              When when) {
    std::vector<double> gaps;
    std::vector<double> failovers;
    std::vector<double> more;
    for (int i = 0; i < times; ++i) {
      if (when.all_are_back) {
        ASSERT_TRUE(database_servers_->AwaitAllMachines());
      }
      ASSERT_TRUE(database_servers_->AwaitPrimaryWithStandby());
      traffic.Await(10);
      const auto roles = database_servers_->FindRoles();
      if (!roles || !roles->standby) {
        --i;  // just then it had none
        continue;
      }
      const std::vector<std::size_t> killed = choose(*roles);
      for (const std::size_t machine : killed) database_servers_->Kill(machine);
      const CommitProbe probe(dsn_);
      if (when.start_at_once) StartAll(killed);
      gaps.push_back(AwaitAllClients(traffic));
      StartAll(killed);
      cluster::WaitUntil([&] { return probe.seconds() > 0; });
      failovers.push_back(probe.seconds());
      more.push_back(gaps.back() - failovers.back());
      EXPECT_GT(failovers.back(), 0) << what << " " << i << ": no commit";
      EXPECT_LE(more.back(), kMostMore) << what << " " << i;
      if (HasFailure()) return;
    }
    if (gaps.empty()) return;
    fmt::print("{}: killed {} times; no answer for {}; no commit for {}; more by {}\n", what, times,
               MedianAndMost(gaps), MedianAndMost(failovers), MedianAndMost(more));
  }
  double AwaitAllClients(const ClusterTraffic& traffic) {
    auto all = std::async(std::launch::async, [&] { return traffic.AwaitAllClients(); });
    while (all.wait_for(std::chrono::milliseconds(500)) != std::future_status::ready) {
      most_sessions_ = std::max(most_sessions_, database_servers_->CountSessions());
    }
    return all.get();
  }
  static std::string MedianAndMost(std::vector<double> seconds) {
    std::ranges::sort(seconds);
    return fmt::format("{:.1f} s in the median, {:.1f} s at most", seconds[seconds.size() / 2],
                       seconds.back());
  }
  void StartAll(const std::vector<std::size_t>& machines) {
    for (const std::size_t machine : machines) database_servers_->Start(machine);
  }

  std::unique_ptr<PatroniCluster> database_servers_;
  std::vector<std::unique_ptr<ServerProcess>> nodes_;
  std::vector<std::uint16_t> ports_;
  int most_sessions_ = 0;
};

TEST_F(ServePatroniTest, NothingIsLostWhateverMachineOfTheDatabaseDies) {
  const Kills kills = ReadKills();
  using Roles = PatroniCluster::Roles;
  using Machines = std::vector<std::size_t>;
  const auto primary = [](const Roles& roles) { return Machines{roles.primary}; };
  const auto standby = [](const Roles& roles) { return Machines{*roles.standby}; };
  const auto all = [](const Roles&) { return Machines{0, 1, 2}; };
  ClusterTraffic traffic(kClients, [&] { return ports_; });
  Repeat("the primary", kills.primary, traffic, primary, {.all_are_back = true});
  Repeat("the synchronous standby", kills.standby, traffic, standby, {});
  Repeat("everything", kills.everything, traffic, all, {.start_at_once = true});
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
  EXPECT_LE(most_sessions_, static_cast<int>(nodes_.size()) * kMostSessions);
  fmt::print("{} rewards acknowledged, {}; {} sessions at most\n", traffic.acknowledged(),
             HasFailure() ? "see above" : "none lost, none counted twice", most_sessions_);
}

}  // namespace
}  // namespace codband
