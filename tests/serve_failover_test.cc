// PostgreSQL with a synchronous standby dies under real nodes and clients: nothing that was
// acknowledged is lost.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cluster_traffic.h"
#include "tests/serve_cluster_testing.h"

namespace codband {
namespace {

class ServeFailoverTest : public ServeClusterTest {
 protected:
  void SetUp() override {
    MakeRoot();
    settings_ = {"durability.checkpoint_events=50", "log.level=error"};
    primary_ = std::make_unique<PostgresServer>();
    standby_ = std::make_unique<PostgresServer>(*primary_, "standby");
    cluster::Psql psql({.dsn = primary_->Dsn(), .schema = "public"});
    psql.Run("CREATE DATABASE loop");
    psql.Run("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    psql.Run("SELECT pg_reload_conf()");
    static constexpr cluster::Statement kSync{
        "sync", "SELECT 1::bigint FROM pg_stat_replication WHERE sync_state = 'sync'"};
    cluster::WaitUntil([&] { return psql.connection().Run(kSync, {}).rows.size() == 1; });
    dsn_ = PostgresServer::Dsn({primary_.get(), standby_.get()}, "loop");
    for (const std::string name : {"a", "b"}) {
      nodes_.push_back(StartNode(name));
      ASSERT_TRUE(nodes_.back()->listens());
      ports_.push_back(nodes_.back()->port());
    }
  }

  std::unique_ptr<PostgresServer> primary_;
  std::unique_ptr<PostgresServer> standby_;
  std::vector<std::unique_ptr<ServerProcess>> nodes_;
  std::vector<std::uint16_t> ports_;
};

TEST_F(ServeFailoverTest, APromotedStandbyHasEverythingThatWasAcknowledged) {
  ClusterTraffic traffic(3, [&] { return ports_; });
  traffic.Await(60);
  primary_->Kill();
  standby_->Promote();
  traffic.AwaitAllClients();
  traffic.Await(60);
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
}

TEST_F(ServeFailoverTest, WithoutItsStandbyItWaitsAndGoesOn) {
  ClusterTraffic traffic(3, [&] { return ports_; });
  for (int i = 0; i < 2; ++i) {
    traffic.Await(20);
    standby_->Kill();
    standby_->Start();
  }
  traffic.Await(20);
  // Everything at once.
  primary_->Kill();
  standby_->Kill();
  primary_->Start();
  standby_->Start();
  traffic.AwaitAllClients();
  traffic.Stop();
  traffic.ExpectNothingLostOrDoubled();
}

}  // namespace
}  // namespace codband
