// kill -9 of the node that serves, again and again, while another one follows and clients ask:
// nothing acknowledged is lost, and nothing counts twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster_traffic.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

constexpr int kKills = 50;
constexpr int kClients = 4;

class ServeClusterKillsTest : public ServeClusterTest {
 protected:
  ServeClusterKillsTest() { settings_ = {"durability.checkpoint_events=50", "log.level=error"}; }

  void Start(std::size_t index) {
    nodes_[index] = StartNode(std::string(1, static_cast<char>('a' + index)));
    ASSERT_TRUE(nodes_[index]->listens());
    ports_[index] = nodes_[index]->port();
  }
  // Which node owns the partition; waits until one does.
  std::size_t Owner() const {
    static constexpr cluster::Statement kOwner{
        "kills_owner", "SELECT owner FROM partitions WHERE lease_until > clock_timestamp()"};
    cluster::Psql psql("codband", database_);
    while (true) {
      const cluster::Reply reply = psql.connection().Run(kOwner, {});
      if (reply.ok() && !reply.rows.empty()) return reply.rows.Bytes(0, 0) == "a" ? 0 : 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  std::array<std::unique_ptr<ServerProcess>, 2> nodes_;
  std::array<std::atomic<std::uint16_t>, 2> ports_;
};

TEST_F(ServeClusterKillsTest, NothingIsLostAndNothingCountsTwice) {
  for (std::size_t i = 0; i < 2; ++i) Start(i);
  ClusterTraffic traffic(kClients, [&] {
    return std::vector<std::uint16_t>{ports_[0], ports_[1]};
  });
  std::vector<double> gaps;
  int ready = 0;
  for (int i = 0; i < kKills; ++i) {
    traffic.Await(20);
    const std::size_t owner = Owner();
    const std::string other = owner == 0 ? "b" : "a";
    cluster::WaitUntil([&] { return FollowedBy(other) > 0; });
    ready += FollowedBy(other) > 0 ? 1 : 0;
    nodes_[owner]->Stop(SIGKILL);
    gaps.push_back(traffic.AwaitAllClients());
    Start(owner);
  }
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
  std::ranges::sort(gaps);
  EXPECT_EQ(ready, kKills);
  fmt::print("{} kills, {} rewards acknowledged; gap: median {:.1f} s, longest {:.1f} s\n", kKills,
             traffic.acknowledged(), gaps[gaps.size() / 2], gaps.back());
}

}  // namespace
}  // namespace codband
