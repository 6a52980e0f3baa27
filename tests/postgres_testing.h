#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "codband/cluster/postgres/connection.h"
#include "codband/cluster/postgres/postgres_log.h"
#include "tests/postgres_server.h"

namespace codband::cluster {

// A loop that no other test has.
inline std::string NewLoop() {
  static std::atomic<int> count{0};
  return "loop_" + std::to_string(++count);
}

// A connection for what the log cannot do.
class Psql {
 public:
  explicit Psql(const std::string& loop, const std::string& database = "postgres")
      : Psql({.dsn = PostgresServer::Shared().Dsn(database), .schema = loop}) {}
  explicit Psql(const Connection::Options& options) {
    auto opened = Connection::Open(options, never_);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    connection_ = std::move(opened).value();
  }
  void Run(const std::string& sql) {
    const Reply reply = connection_->RunScript(sql);
    EXPECT_TRUE(reply.ok()) << sql << ": " << reply.problem;
  }
  Connection& connection() { return *connection_; }

 private:
  std::atomic<bool> never_{false};
  std::unique_ptr<Connection> connection_;
};

// A database of the shared server, as if it were another PostgreSQL cluster.
inline std::string SecondDatabase() {
  static const std::string name = [] {
    Psql("public").Run("CREATE DATABASE second");
    return "second";
  }();
  return name;
}

inline void WaitUntil(const std::function<bool()>& done) {
  for (int i = 0; i < 10'000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

inline std::unique_ptr<store::PartitionLog> OpenLog(const PostgresOptions& options) {
  auto log = OpenPostgresLog(options);
  EXPECT_TRUE(log.ok()) << log.status().ToString();
  return log.ok() ? std::move(log).value() : nullptr;
}

}  // namespace codband::cluster
