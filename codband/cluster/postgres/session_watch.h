#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "codband/cluster/postgres/connection.h"

namespace codband::cluster {

// What a session is called, in SQL on pg_stat_activity: no two have the same name, on any server.
#define CODBAND_SESSION_NAME "pid || ' ' || extract(epoch FROM backend_start)"

// Knows which sessions the primary has. While somebody wants to know it looks once a second, by a
// connection that it makes for that: so it also finds the new primary when the old one is silent.
// Thread-safe.
class SessionWatch {
 public:
  // `options`: of those who ask, without a watch.
  explicit SessionWatch(Connection::Options options);
  ~SessionWatch();

  enum class Found {
    kUnknown,  // there was no look since then that was answered: one is made soon
    kThere,
    kGone,  // or its server is not the primary any more
  };
  Found Find(const std::string& session, std::int64_t since_ms);  // of BootMillis

 private:
  void Run();
  std::optional<std::set<std::string>> Look() const;

  const Connection::Options options_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::int64_t wanted_until_ms_ = 0;
  std::int64_t looked_ms_ = -1;  // when the look that is known began
  std::set<std::string> sessions_;
  std::thread thread_;
};

}  // namespace codband::cluster
