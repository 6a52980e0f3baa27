// What an operator does with a cluster of real nodes: moves partitions, drains nodes, examines it.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "tests/serve_partitions_testing.h"

namespace codband {
namespace {

class ServeOperationsTest : public ServePartitionsTest {
 protected:
  // How many partitions the nodes have, as the database has it.
  std::map<std::string, int> Owned() const {
    cluster::Psql psql("codband", database_);
    const cluster::Reply reply = psql.connection().Run(
        {"owned",
         "SELECT owner, count(*) FROM partitions WHERE owner IS NOT NULL AND lease_until > "
         "clock_timestamp() GROUP BY owner"},
        {});
    std::map<std::string, int> owned;
    for (std::size_t i = 0; i < reply.rows.size(); ++i) {
      owned[reply.rows.Bytes(i, 0)] = static_cast<int>(reply.rows.Int(i, 1));
    }
    return owned;
  }
  std::uint64_t SumOfEpochs() const { return Ask("sum(epoch)::bigint"); }
};

TEST_F(ServeOperationsTest, APartitionGoesWhereItIsWantedWhileClientsAsk) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  ASSERT_TRUE(a->listens() && b->listens());
  AwaitShares({a.get(), b.get()});
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::mutex mutex;
  std::vector<std::string> failed;
  std::vector<std::thread> clients;
  for (int client = 0; client < 2; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; !stop; ++i) {
        const std::string event = "c" + std::to_string(client) + "e" + std::to_string(i);
        const auto connection = (client == 0 ? *a : *b).Connect();
        const auto ranked =
            connection->Send({.method = "POST",
                              .target = "/v1/rank",
                              .body = R"({"eventId":")" + event + R"(","userId":"u)" +
                                      std::to_string(i % 40) + R"(",)" + Actions() + "}"},
                             kPatience);
        const auto rewarded = connection->Send({.method = "POST",
                                                .target = "/v1/events/" + event + "/reward",
                                                .body = R"({"value":1})"},
                                               kPatience);
        ++answered;
        for (const auto& reply : {ranked, rewarded}) {
          if (reply.ok() && reply.value().status == 200) continue;
          const std::lock_guard lock(mutex);
          failed.push_back(event + ": " +
                           (reply.ok() ? reply.value().body : reply.status().ToString()));
        }
      }
    });
  }
  for (int i = 0; i < 3; ++i) {
    const std::string to = i % 2 == 0 ? "b" : "a";
    for (int partition = 0; partition < kPartitions; ++partition) {
      const auto moved =
          RunCluster("move --partition " + std::to_string(partition) + " --to " + to);
      ASSERT_EQ(moved.exit_code, 0) << moved.text;
    }
    EXPECT_EQ(Owned(), (std::map<std::string, int>{{to, kPartitions}}));
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_GT(answered, 50);
  EXPECT_TRUE(failed.empty()) << failed.size() << " of " << answered << ", first " << failed[0];
  EXPECT_NE(RunCluster("status").text.find(" b\n"), std::string::npos);
  // Once they may go where they come, they are spread again.
  for (int partition = 0; partition < kPartitions; ++partition) {
    EXPECT_EQ(RunCluster("move --partition " + std::to_string(partition) + " --to any").exit_code,
              0);
  }
  AwaitShares({a.get(), b.get()});
}

TEST_F(ServeOperationsTest, ADrainedNodeHasNothingUntilItMay) {
  auto a = StartNode("a");
  auto b = StartNode("b");
  auto c = StartNode("c");
  ASSERT_TRUE(a->listens() && b->listens() && c->listens());
  AwaitShares({a.get(), b.get(), c.get()});
  const auto drained = RunCluster("drain --node b");
  ASSERT_EQ(drained.exit_code, 0) << drained.text;
  EXPECT_EQ(Owned(), (std::map<std::string, int>{{"a", 2}, {"c", 2}}));
  EXPECT_NE(RunCluster("status").text.find("draining"), std::string::npos);
  // It passes requests on.
  EXPECT_EQ(RankFor({b.get()}, "ada").status, 200U);
  const auto to_b = RunCluster("move --partition 0 --to b");
  EXPECT_EQ(to_b.exit_code, 2);
  EXPECT_NE(to_b.text.find("is draining"), std::string::npos) << to_b.text;
  ASSERT_EQ(RunCluster("drain --node a").exit_code, 0);
  EXPECT_EQ(Owned(), (std::map<std::string, int>{{"c", 4}}));
  const auto last = RunCluster("drain --node c");
  EXPECT_EQ(last.exit_code, 2);
  EXPECT_NE(last.text.find("no other node is alive"), std::string::npos) << last.text;
  ASSERT_EQ(RunCluster("drain --node b --undo").exit_code, 0);
  WaitFor([&] { return Owned() == std::map<std::string, int>{{"b", 2}, {"c", 2}}; });
  EXPECT_EQ(Owned(), (std::map<std::string, int>{{"b", 2}, {"c", 2}}));
  // A new process of the name begins anew.
  a->Stop(SIGTERM);
  a = StartNode("a");
  AwaitShares({a.get(), b.get(), c.get()});
}

// Partitions move to a node that comes, and away from one that goes, and then stay where they are.
TEST_F(ServeOperationsTest, PartitionsEvenOutAndStay) {
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  AwaitShares({a.get()});
  auto b = StartNode("b");
  auto c = StartNode("c");
  AwaitShares({a.get(), b.get(), c.get()});
  const std::uint64_t epochs = SumOfEpochs();
  std::this_thread::sleep_for(std::chrono::seconds(4));  // longer than a lease
  EXPECT_EQ(SumOfEpochs(), epochs);
  c->Stop(SIGKILL);
  WaitFor([&] { return Owned() == std::map<std::string, int>{{"a", 2}, {"b", 2}}; });
  EXPECT_EQ(Owned(), (std::map<std::string, int>{{"a", 2}, {"b", 2}}));
}

TEST_F(ServeOperationsTest, DoctorSaysWhatIsWrong) {
  settings_.push_back("durability.checkpoint_seconds=0.5");
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  for (int i = 0; i < 40; ++i) {
    const std::string event = "event" + std::to_string(i);
    ASSERT_EQ(RankFor({a.get()}, "user" + std::to_string(i % 10), event).status, 200U);
    ASSERT_EQ(Reward({a.get()}, event), "accepted");
  }
  WaitFor([&] { return Ask("min(first_sequence)") > 1; });
  const std::string scratch = (root_ / "scratch").string();
  const auto sound = RunCluster("doctor --scratch " + scratch);
  // The database of the tests runs without fsync, and nothing else is to be said.
  EXPECT_EQ(sound.exit_code, 1) << sound.text;
  EXPECT_NE(sound.text.find("fsync is off"), std::string::npos) << sound.text;
  std::size_t wrong = 0;
  for (std::size_t at = 0; (at = sound.text.find("  NO  ", at)) != sound.text.npos; ++at) ++wrong;
  EXPECT_EQ(wrong, 1U) << sound.text;
  EXPECT_NE(sound.text.find("partition 3 made anew: models"), std::string::npos) << sound.text;

  a->Stop(SIGKILL);
  cluster::Psql psql("codband", database_);
  psql.Run(
      "UPDATE blobs SET bytes = set_byte(bytes, 40, get_byte(bytes, 40) # 1) "
      "WHERE p = 1 AND name = 'checkpoint' AND part = 1");
  psql.Run("UPDATE partitions SET last_sequence = last_sequence + 1 WHERE p = 2");
  psql.Run("UPDATE partitions SET wanted = 'nobody' WHERE p = 3");
  psql.Run("UPDATE shared_log SET frame = 'x' WHERE sequence = 1");
  WaitFor([&] { return RunCluster("status").text.find("4 of 4 partitions") != std::string::npos; });
  const auto broken = RunCluster("doctor");
  EXPECT_EQ(broken.exit_code, 1);
  for (const char* text : {"none is alive; gone without saying so: a", "the lease of 'a' is over",
                           "part 1 of the checkpoint at", "the log ends before frame",
                           "wanted on 'nobody'", "the identity of the loop cannot be read"}) {
    EXPECT_NE(broken.text.find(text), std::string::npos) << text << "\n" << broken.text;
  }
}

TEST_F(ServeOperationsTest, WrongCommandsAreRefusedWithAReason) {
  EXPECT_NE(RunCluster("status").text.find("there is no loop"), std::string::npos);
  auto a = StartNode("a");
  ASSERT_TRUE(a->listens());
  const std::map<std::string, std::string> wrong{
      {"dance", "expected one of status, move, drain, doctor, backup, restore, import, export"},
      {"move --partition 1", "--to is missing"},
      {"move --partition x --to a", "--partition is 'x', expected a number"},
      {"move --partition 9 --to a", "there is no partition 9, the loop has 0 to 3"},
      {"move --partition 1 --to nobody", "no node 'nobody' is alive"},
      {"drain", "--node is missing"},
      {"drain --node nobody", "no node 'nobody' is alive"},
      {"drain --node nobody --undo", "there is no node 'nobody'"},
      {"status --node a", "--node is for 'drain', not for 'status'"},
      {"move --partition 1 --to a --wait soon", "--wait is 'soon'"},
  };
  for (const auto& [arguments, expected] : wrong) {
    const auto outcome = RunCluster(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(expected), std::string::npos) << arguments << "\n" << outcome.text;
  }
}

}  // namespace
}  // namespace codband
