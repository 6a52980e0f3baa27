// A partition is moved between nodes again and again under clients: nothing that was acknowledged
// is lost, and nothing counts twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "codband/cluster/postgres/postgres_log.h"
#include "codband/server/cluster/cluster_admin.h"
#include "tests/cluster_traffic.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

constexpr int kMoves = 100;
constexpr int kClients = 4;

class ServeClusterMovesTest : public ServeClusterTest {
 protected:
  ServeClusterMovesTest() { settings_ = {"durability.checkpoint_events=50", "log.level=error"}; }
};

TEST_F(ServeClusterMovesTest, NothingIsLostAndNothingCountsTwice) {
  const auto a = StartNode("a");
  const auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  const auto log = cluster::OpenLog({.dsns = {dsn_}, .create = false});
  ClusterTraffic traffic(kClients, [&] {
    return std::vector<std::uint16_t>{a->port(), b->port()};
  });
  std::vector<double> pauses;
  for (int i = 0; i < kMoves; ++i) {
    traffic.Await(20);
    static_cast<void>(traffic.TakeLongest());
    const Status moved =
        server::MovePartition(*log, 0, i % 2 == 0 ? "b" : "a", std::chrono::seconds(60));
    ASSERT_TRUE(moved.ok()) << moved.ToString();
    traffic.AwaitAllClients();
    pauses.push_back(traffic.TakeLongest());
  }
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
  std::ranges::sort(pauses);
  fmt::print(
      "{} moves, {} rewards acknowledged; the request that waited longest: median {:.2f} s, "
      "longest {:.2f} s\n",
      kMoves, traffic.acknowledged(), pauses[pauses.size() / 2], pauses.back());
}

}  // namespace
}  // namespace codband
