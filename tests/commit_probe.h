#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace codband {

// Commits one row as any client of PostgreSQL would, from when it is made until that succeeds: what
// a failover takes without codband. The table is there: probe (at timestamptz).
class CommitProbe {
 public:
  explicit CommitProbe(std::string dsn) : dsn_(std::move(dsn)), thread_([this] { Run(); }) {}
  ~CommitProbe() {
    stop_ = true;
    thread_.join();
  }
  CommitProbe(const CommitProbe&) = delete;
  CommitProbe& operator=(const CommitProbe&) = delete;

  // Seconds from its making to the commit; 0: not yet.
  double seconds() const { return seconds_; }

 private:
  void Run() {
    const auto start = std::chrono::steady_clock::now();
    while (!stop_ && !TryOnce()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  bool TryOnce() {
    const std::string dsn = dsn_ + " target_session_attrs=read-write connect_timeout=2";
    PGconn* connection = PQconnectdb(dsn.c_str());
    warned_ = false;
    PQsetNoticeProcessor(
        connection, [](void* warned, const char*) { *static_cast<bool*>(warned) = true; },
        &warned_);
    bool committed = PQstatus(connection) == CONNECTION_OK &&
                     PQsendQuery(connection, "INSERT INTO probe VALUES (now())") == 1;
    while (committed && !stop_ && PQisBusy(connection) == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      committed = PQconsumeInput(connection) == 1;
    }
    if (stop_) committed = false;
    if (committed) {
      PGresult* result = PQgetResult(connection);
      committed = PQresultStatus(result) == PGRES_COMMAND_OK && !warned_;
      PQclear(result);
    }
    PQfinish(connection);
    return committed;
  }

  const std::string dsn_;
  std::atomic<bool> stop_{false};
  std::atomic<double> seconds_{0};
  bool warned_ = false;  // that the commit has not waited for the standby, for one
  std::thread thread_;   // last: it uses the rest
};

}  // namespace codband
