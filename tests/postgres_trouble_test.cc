// What an append is answered when connections, the server or other owners get in between.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "tests/postgres_testing.h"

namespace codband::cluster {
namespace {

using store::Claim;
using store::LogFrame;
using store::PartitionState;

class PostgresTroubleTest : public testing::Test {
 protected:
  std::unique_ptr<store::PartitionLog> Open(std::int64_t timeout_ms = 5000) const {
    return OpenLog({.dsns = {PostgresServer::Shared().Dsn()},
                    .loop = loop_,
                    .partitions = 2,
                    .timeout_ms = timeout_ms});
  }
  template <typename T>
  static T Await(const std::function<void(std::function<void(T)>)>& call) {
    auto answer = std::make_shared<std::promise<T>>();
    auto future = answer->get_future();
    call([answer](T value) { answer->set_value(std::move(value)); });
    return future.get();
  }
  static Result<PartitionState> Acquire(store::PartitionLog& log, std::int64_t lease_ms = 60'000) {
    return Await<Result<PartitionState>>(
        [&](auto done) { log.Acquire(0, "node", lease_ms, std::move(done)); });
  }
  static Status Append(store::PartitionLog& log, Claim claim, std::uint64_t sequence,
                       const std::string& frame) {
    return Await<Status>([&](auto done) { log.Append(claim, sequence, frame, std::move(done)); });
  }
  static std::vector<std::string> Frames(store::PartitionLog& log) {
    std::vector<std::string> frames;
    while (true) {
      const auto page = Await<Result<std::vector<LogFrame>>>(
          [&](auto done) { log.Read(0, frames.size() + 1, 1 << 20, std::move(done)); });
      EXPECT_TRUE(page.ok()) << page.status().ToString();
      if (!page.ok() || page.value().empty()) return frames;
      for (const LogFrame& frame : page.value()) frames.push_back(frame.bytes);
    }
  }

  // How many sessions wait for a lock.
  static std::uint64_t Waiting(Connection& connection) {
    static constexpr Statement kWaiting{
        "waiting",
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
        "application_name = 'codband'"};
    const Reply reply = connection.Run(kWaiting, {});
    EXPECT_TRUE(reply.ok()) << reply.problem;
    return reply.ok() ? reply.rows.Number(0, 0) : 0;
  }

  const std::string loop_ = NewLoop();
};

// Appends from now on until it is told to stop, and remembers what the log has said.
class Appender {
 public:
  Appender(store::PartitionLog& log, Claim claim) : log_(log), claim_(claim) { Next(); }
  void Stop() {
    stop_ = true;
    WaitUntil([&] { return ended_.load(); });
    EXPECT_TRUE(ended_);
  }
  std::vector<std::string> told() const { return told_; }
  int refused() const { return refused_; }
  std::size_t count() const { return count_; }

 private:
  void Next() {
    const std::string frame = "frame " + std::to_string(++tries_);
    log_.Append(claim_, told_.size() + 1, frame, [this, frame](const Status& status) {
      if (status.ok()) {
        told_.push_back(frame);
        count_ = told_.size();
      } else {
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
        ++refused_;
      }
      if (stop_) {
        ended_ = true;
      } else {
        Next();
      }
    });
  }

  store::PartitionLog& log_;
  const Claim claim_;
  std::vector<std::string> told_;
  std::atomic<std::size_t> count_{0};
  int tries_ = 0;
  int refused_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
};

TEST_F(PostgresTroubleTest, ConnectionsThatAreCutLeaveNoDoubt) {
  const auto log = Open();
  Appender appender(*log, Acquire(*log).value().claim());
  Psql psql(loop_);
  for (int i = 0; i < 60; ++i) {
    psql.Run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
        "application_name = 'codband' AND pid <> pg_backend_pid() AND query LIKE '%INTO log%'");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::size_t so_far = appender.count();
  WaitUntil([&] { return appender.count() > so_far + 5; });
  appender.Stop();
  EXPECT_EQ(Frames(*log), appender.told());
  EXPECT_GT(appender.told().size(), 10U);
}

TEST_F(PostgresTroubleTest, ACrashOfTheServerLeavesNoDoubt) {
  const auto log = Open();
  Appender appender(*log, Acquire(*log).value().claim());
  for (int i = 0; i < 2; ++i) {
    const std::size_t before = appender.count();
    WaitUntil([&] { return appender.count() > before + 20; });
    PostgresServer::Shared().Stop(SIGQUIT);
    PostgresServer::Shared().Start();
  }
  const std::size_t before = appender.count();
  WaitUntil([&] { return appender.count() > before + 20; });
  appender.Stop();
  EXPECT_EQ(Frames(*log), appender.told());
  EXPECT_GT(appender.told().size(), 60U);
}

// The server is slow: the client gives the append up, asks again, and the append happens after all.
TEST_F(PostgresTroubleTest, AnAppendThatIsLateIsFoundOut) {
  const auto log = Open(300);
  const Claim claim = Acquire(*log).value().claim();
  Psql locked(loop_), psql(loop_);
  locked.Run("BEGIN; SELECT * FROM partitions WHERE p = 0 FOR UPDATE");
  std::optional<Status> answer;
  std::mutex mutex;
  log->Append(claim, 1, "late", [&](const Status& status) {
    const std::lock_guard lock(mutex);
    answer = status;
  });
  // The append waits, and the question what has become of it behind it.
  WaitUntil([&] { return Waiting(psql.connection()) >= 2; });
  {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(answer.has_value());
  }
  locked.Run("COMMIT");
  WaitUntil([&] {
    const std::lock_guard lock(mutex);
    return answer.has_value();
  });
  const std::lock_guard lock(mutex);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->ok(), !Frames(*log).empty()) << answer->ToString();
  EXPECT_EQ(Append(*log, claim, answer->ok() ? 2 : 1, "next").code(), StatusCode::kOk);
}

// A server process is stopped before it reads the append. It finds it in its socket when everybody
// believes that it did not happen.
TEST_F(PostgresTroubleTest, AnAppendThatWasGivenUpCannotHappenLater) {
  const auto log = Open(300);
  const Claim claim = Acquire(*log).value().claim();
  ASSERT_TRUE(Append(*log, claim, 1, "first").ok());
  Psql psql(loop_);
  static constexpr Statement kWho{"who",
                                  "SELECT pid::bigint FROM pg_stat_activity WHERE state = 'idle' "
                                  "AND query LIKE '%INTO log%' AND backend_start = (SELECT "
                                  "max(backend_start) FROM pg_stat_activity WHERE state = 'idle' "
                                  "AND query LIKE '%INTO log%')"};
  const Reply who = psql.connection().Run(kWho, {});
  ASSERT_TRUE(who.ok() && who.rows.size() == 1) << who.problem;
  const auto process = static_cast<pid_t>(who.rows.Int(0, 0));
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  EXPECT_EQ(Append(*log, claim, 2, "given up").code(), StatusCode::kUnavailable);
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  static constexpr Statement kGone{
      "gone", "SELECT pid::bigint FROM pg_stat_activity WHERE pid = $1::integer"};
  WaitUntil([&] {
    return psql.connection().Run(kGone, {static_cast<std::uint64_t>(process)}).rows.empty();
  });
  EXPECT_EQ(Frames(*log), std::vector<std::string>{"first"});
  EXPECT_TRUE(Append(*log, claim, 2, "second").ok());
}

// Without its standby a commit waits, and does not notice that the client has given it up.
TEST_F(PostgresTroubleTest, SessionsThatWaitForAStandbyDoNotPileUp) {
  const auto log = Open(200);
  const Claim claim = Acquire(*log).value().claim();
  Psql psql(loop_);
  psql.Run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  psql.Run("SELECT pg_reload_conf()");
  std::promise<Status> answer;
  log->Append(claim, 1, "waits", [&](const Status& status) { answer.set_value(status); });
  static constexpr Statement kWaiting{"for_standby",
                                      "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type "
                                      "IN ('IPC', 'Lock') AND backend_type = 'client backend'"};
  const auto waiting = [&] { return psql.connection().Run(kWaiting, {}).rows.Number(0, 0); };
  WaitUntil([&] { return waiting() > 0; });
  ASSERT_GT(waiting(), 0U);
  std::uint64_t most = 0;
  for (int i = 0; i < 200; ++i) {  // twenty times as long as one is waited for
    most = std::max(most, waiting());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(most, 2U);  // the append, and the question what has become of it

  psql.Run("ALTER SYSTEM RESET synchronous_standby_names");
  psql.Run("SELECT pg_reload_conf()");
  const Status status = answer.get_future().get();
  EXPECT_EQ(status.ok(), !Frames(*log).empty()) << status.ToString();
  WaitUntil([&] { return waiting() == 0; });
  EXPECT_EQ(waiting(), 0U);
}

// A machine that died has no process that would refuse a connection: here one that only listens.
TEST_F(PostgresTroubleTest, AHostThatSaysNothingDelaysNothing) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 5), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string hosts =
      fmt::format("127.0.0.1,{}", PostgresServer::Shared().directory().string());
  const auto open = [&](const std::string& dsn) {
    const std::atomic<bool> never{false};
    return Connection::Open({.dsn = dsn, .schema = loop_}, never).status();
  };
  const auto start = std::chrono::steady_clock::now();
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Status opened =
      open(fmt::format("host={} port={},5432 user=codband dbname=postgres", hosts, port));
  EXPECT_TRUE(opened.ok()) << opened.ToString();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 2.5);  // half of connect_timeout
  // Where nobody answers, that is said of each.
  const Status nobody =
      open(fmt::format("host=127.0.0.1,127.0.0.1 port={},1 connect_timeout=1 dbname=x", port));
  EXPECT_EQ(nobody.code(), StatusCode::kUnavailable);
  EXPECT_NE(nobody.message().find("no answer from '127.0.0.1' in time"), std::string::npos);
  EXPECT_NE(nobody.message().find("Connection refused"), std::string::npos) << nobody.message();
  // A list of ports for other hosts than there are is libpq's to refuse.
  EXPECT_EQ(open(fmt::format("host={} port=1,2,3", hosts)).code(), StatusCode::kUnavailable);
  ::close(silent);
}

// The primary says nothing any more, and its connections stay: only the new primary tells.
TEST(PostgresFailoverTest, WhatWaitsForASilentPrimaryGoesOnWithTheNextOne) {
  PostgresServer primary;
  PostgresServer standby(primary, "standby");
  Psql psql({.dsn = primary.Dsn(), .schema = "public"});
  psql.Run("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  psql.Run("SELECT pg_reload_conf()");
  const auto log = OpenLog({.dsns = {PostgresServer::Dsn({&primary, &standby}, "postgres")},
                            .loop = "loop",
                            .partitions = 1,
                            .timeout_ms = 60'000});
  std::promise<Result<PartitionState>> acquired;
  log->Acquire(0, "node", 60'000,
               [&](Result<PartitionState> state) { acquired.set_value(std::move(state)); });
  const auto state = acquired.get_future().get();
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  const auto append = [&](std::uint64_t sequence) {
    const auto answer = std::make_shared<std::promise<Status>>();
    log->Append(state.value().claim(), sequence, "frame",
                [answer](const Status& status) { answer->set_value(status); });
    return answer->get_future();
  };
  ASSERT_TRUE(append(1).get().ok());
  primary.Freeze();
  auto answer = append(2);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  standby.Promote();
  const auto promoted = std::chrono::steady_clock::now();
  EXPECT_EQ(answer.get().code(), StatusCode::kUnavailable);  // it did not happen
  EXPECT_TRUE(append(2).get().ok());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - promoted;
  EXPECT_LT(took.count(), 5);
  primary.Kill();
}

// Somebody else takes the partition while nobody knows what has become of the append.
TEST_F(PostgresTroubleTest, ATakeoverKnowsWhetherTheLastAppendHappened) {
  for (const bool append_first : {true, false}) {
    const auto log = Open(300);
    const auto other = Open(20'000);
    auto taken = Acquire(*log, 1);
    // On a busy machine 300 ms may be too short; the lease is over at once.
    for (int again = 0; again < 20 && !taken.ok(); ++again) taken = Acquire(*log, 1);
    ASSERT_TRUE(taken.ok()) << taken.status().ToString();
    const std::uint64_t sequence = taken.value().last_sequence + 1;
    Psql locked(loop_), psql(loop_);
    locked.Run("BEGIN; SELECT * FROM partitions WHERE p = 0 FOR UPDATE");
    std::promise<Status> appended;
    std::promise<Result<PartitionState>> acquired;
    const auto append = [&] {
      log->Append(taken.value().claim(), sequence, "in doubt",
                  [&](const Status& status) { appended.set_value(status); });
    };
    const auto acquire = [&] {
      other->Acquire(0, "other", 1,
                     [&](Result<PartitionState> state) { acquired.set_value(std::move(state)); });
    };
    // Who waits first comes first.
    const std::uint64_t before = Waiting(psql.connection());
    append_first ? append() : acquire();
    WaitUntil([&] { return Waiting(psql.connection()) > before; });
    append_first ? acquire() : append();
    WaitUntil([&] { return Waiting(psql.connection()) >= before + 3; });
    locked.Run("COMMIT");
    const auto state = acquired.get_future().get();
    ASSERT_TRUE(state.ok()) << state.status().ToString();
    const Status answer = appended.get_future().get();
    EXPECT_EQ(state.value().last_sequence, append_first ? sequence : sequence - 1);
    EXPECT_EQ(answer.code(), append_first ? StatusCode::kOk : StatusCode::kGone)
        << answer.ToString();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the leases are over
  }
}

TEST_F(PostgresTroubleTest, ALogThatIsClosedMeanwhileSaysThatItDoesNotKnow) {
  auto log = Open(300);
  const Claim claim = Acquire(*log).value().claim();
  Psql locked(loop_), psql(loop_);
  locked.Run("BEGIN; SELECT * FROM partitions WHERE p = 0 FOR UPDATE");
  std::promise<Status> appended;
  log->Append(claim, 1, "x", [&](const Status& status) { appended.set_value(status); });
  WaitUntil([&] { return Waiting(psql.connection()) >= 1; });
  log.reset();
  EXPECT_EQ(appended.get_future().get().code(), StatusCode::kIoError);
  locked.Run("COMMIT");
}

}  // namespace
}  // namespace codband::cluster
