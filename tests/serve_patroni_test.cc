// Machines of PostgreSQL are killed under real nodes and clients, and Patroni fails over: nothing
// that was acknowledged is lost, and nothing counts twice. How often is in the environment variable
// PATRONI_KILLS: of the primary, of the standby, of everything.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cluster_traffic.h"
#include "tests/patroni_cluster.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

constexpr int kClients = 3;

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

  // Kills, waits until all clients are answered, starts what was killed again.
  void Repeat(const char* what, int times, ClusterTraffic& traffic,
              const std::function<std::vector<std::size_t>(const PatroniCluster::Roles&)>& choose,
              bool start_at_once) {
    std::vector<double> gaps;
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(database_servers_->AwaitPrimaryWithStandby());
      traffic.Await(10);
      const auto roles = database_servers_->FindRoles();
      if (!roles || !roles->standby) {
        --i;  // just then it had none
        continue;
      }
      const std::vector<std::size_t> killed = choose(*roles);
      for (const std::size_t machine : killed) database_servers_->Kill(machine);
      if (start_at_once) StartAll(killed);
      gaps.push_back(traffic.AwaitAllClients());
      StartAll(killed);
      if (HasFailure()) return;
    }
    if (gaps.empty()) return;
    std::ranges::sort(gaps);
    fmt::print("{}: killed {} times; no answer for {:.1f} s in the median, {:.1f} s at most\n",
               what, times, gaps[gaps.size() / 2], gaps.back());
  }
  void StartAll(const std::vector<std::size_t>& machines) {
    for (const std::size_t machine : machines) database_servers_->Start(machine);
  }

  std::unique_ptr<PatroniCluster> database_servers_;
  std::vector<std::unique_ptr<ServerProcess>> nodes_;
  std::vector<std::uint16_t> ports_;
};

TEST_F(ServePatroniTest, NothingIsLostWhateverMachineOfTheDatabaseDies) {
  const Kills kills = ReadKills();
  using Roles = PatroniCluster::Roles;
  using Machines = std::vector<std::size_t>;
  ClusterTraffic traffic(kClients, [&] { return ports_; });
  Repeat(
      "the primary", kills.primary, traffic,
      [](const Roles& roles) { return Machines{roles.primary}; }, false);
  Repeat(
      "the synchronous standby", kills.standby, traffic,
      [](const Roles& roles) { return Machines{*roles.standby}; }, false);
  Repeat(
      "everything", kills.everything, traffic,
      [](const Roles&) {
        return Machines{0, 1, 2};
      },
      true);
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
  fmt::print("{} rewards acknowledged, {}\n", traffic.acknowledged(),
             HasFailure() ? "see above" : "none lost, none counted twice");
}

}  // namespace
}  // namespace codband
