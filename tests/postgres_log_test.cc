// The partition log on a real PostgreSQL: what every log must do, and the tables.
#include <gtest/gtest.h>

#include <thread>

#include "codband/store/partition_log_conformance.h"
#include "tests/postgres_testing.h"

namespace codband::store {
namespace {

class PostgresBackend {
 public:
  explicit PostgresBackend(Partition partitions) {
    options_.dsns = {PostgresServer::Shared().Dsn()};
    options_.loop = cluster::NewLoop();
    options_.partitions = partitions;
  }
  std::unique_ptr<PartitionLog> Connect() const { return cluster::OpenLog(options_); }
  static void Sleep(std::int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
  static void WaitFor(const std::function<bool()>& done) { cluster::WaitUntil(done); }

 protected:
  cluster::PostgresOptions options_;
};

// Two PostgreSQL clusters that share the partitions.
class ShardedPostgresBackend : public PostgresBackend {
 public:
  explicit ShardedPostgresBackend(Partition partitions) : PostgresBackend(partitions) {
    options_.dsns.push_back(PostgresServer::Shared().Dsn(cluster::SecondDatabase()));
  }
};

using Backends = testing::Types<PostgresBackend, ShardedPostgresBackend>;
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, PartitionLogConformance, Backends);

}  // namespace
}  // namespace codband::store

namespace codband::cluster {
namespace {

Status OpenStatus(const PostgresOptions& options) { return OpenPostgresLog(options).status(); }

TEST(PostgresSchemaTest, NodesThatStartAtOnceMakeTheTablesOnce) {
  const PostgresOptions options{
      .dsns = {PostgresServer::Shared().Dsn()}, .loop = NewLoop(), .partitions = 3};
  std::vector<std::thread> threads;
  std::atomic<int> opened{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (OpenStatus(options).ok()) ++opened;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened, 4);
}

TEST(PostgresSchemaTest, NewerTablesAreRefused) {
  const PostgresOptions options{.dsns = {PostgresServer::Shared().Dsn()}, .loop = NewLoop()};
  ASSERT_TRUE(OpenStatus(options).ok());
  Psql psql(options.loop);
  psql.Run("UPDATE about SET version = 99");
  const Status status = OpenStatus(options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("have version 99, this program knows versions up to 3"),
            std::string::npos)
      << status.message();
}

TEST(PostgresSchemaTest, ALoopThatMustBeThereIsNotMade) {
  PostgresOptions options{
      .dsns = {PostgresServer::Shared().Dsn()}, .loop = NewLoop(), .create = false};
  EXPECT_EQ(OpenStatus(options).code(), StatusCode::kNotFound);
  EXPECT_EQ(OpenStatus(options).code(), StatusCode::kNotFound);
  options.create = true;
  ASSERT_TRUE(OpenStatus(options).ok());
  options.create = false;
  EXPECT_TRUE(OpenStatus(options).ok());
}

TEST(PostgresSchemaTest, TheNumberOfPartitionsIsForGood) {
  PostgresOptions options{.dsns = {PostgresServer::Shared().Dsn()}, .loop = NewLoop()};
  ASSERT_TRUE(OpenStatus(options).ok());
  options.partitions = 16;  // as the default
  EXPECT_TRUE(OpenStatus(options).ok());
  options.partitions = 8;
  const Status status = OpenStatus(options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("is 8, but the loop"), std::string::npos) << status.message();
  options.partitions = 257;
  EXPECT_EQ(OpenStatus(options).message(), "partitions: is 257, expected 1 to 256");
}

TEST(PostgresSchemaTest, ConnectionStringsKeepTheirOrder) {
  const std::string first = PostgresServer::Shared().Dsn();
  const std::string second = PostgresServer::Shared().Dsn(SecondDatabase());
  PostgresOptions options{.dsns = {first, second}, .loop = NewLoop(), .partitions = 4};
  ASSERT_TRUE(OpenStatus(options).ok());
  EXPECT_TRUE(OpenStatus(options).ok());
  options.dsns = {second, first};
  EXPECT_NE(OpenStatus(options).message().find("give all of them in their order"),
            std::string::npos)
      << OpenStatus(options).message();
  options.dsns = {first};
  EXPECT_EQ(OpenStatus(options).code(), StatusCode::kInvalidArgument);
}

TEST(PostgresSchemaTest, AnotherLoopOfTheSameNameIsNotTakenForTheSame) {
  const std::string first = PostgresServer::Shared().Dsn();
  const std::string second = PostgresServer::Shared().Dsn(SecondDatabase());
  const PostgresOptions options{.dsns = {first, second}, .loop = NewLoop(), .partitions = 4};
  ASSERT_TRUE(OpenStatus(options).ok());
  Psql(options.loop, SecondDatabase()).Run("UPDATE about SET id = 'another'");
  EXPECT_NE(OpenStatus(options).message().find("leads to another loop"), std::string::npos)
      << OpenStatus(options).message();
}

TEST(PostgresSchemaTest, WrongAddressesSayWhatIsWrong) {
  const Status unreadable = OpenStatus({.dsns = {"host=x nonsense"}});
  EXPECT_EQ(unreadable.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unreadable.message().find("the connection string cannot be read"), std::string::npos)
      << unreadable.message();
  for (const std::string dsn : {"postgresql://u:s3cret%zz@h/db", "postgresql://u:s3cret@[::1/db",
                                "password=a s3cret", "postgresql://u:a\"s3cret%zz@h/db",
                                "postgresql://u:s3cret/x@h/db", "postgresql://u:x@y:s3cret@h/db"}) {
    const Status status = OpenStatus({.dsns = {dsn}});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message().find("s3cret"), std::string::npos) << status.message();
  }
  const Status nobody = OpenStatus({.dsns = {"host=/nowhere user=x dbname=y"}});
  EXPECT_EQ(nobody.code(), StatusCode::kUnavailable);
  EXPECT_NE(nobody.message().find("cannot connect to PostgreSQL"), std::string::npos)
      << nobody.message();
  const Status missing = OpenStatus({.dsns = {PostgresServer::Shared().Dsn("no_such_database")}});
  EXPECT_NE(missing.message().find("\"no_such_database\" does not exist"), std::string::npos)
      << missing.message();
  for (const std::string loop : {"", "Upper", "a-b", "pg_own", "1st", "a;drop"}) {
    const Status named = OpenStatus({.dsns = {PostgresServer::Shared().Dsn()}, .loop = loop});
    EXPECT_EQ(named.code(), StatusCode::kInvalidArgument) << loop;
  }
  EXPECT_EQ(OpenStatus({}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace codband::cluster
