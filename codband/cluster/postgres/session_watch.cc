#include "codband/cluster/postgres/session_watch.h"

#include <chrono>
#include <utility>

#include "codband/base/clock.h"

namespace codband::cluster {
namespace {

constexpr std::chrono::milliseconds kPause(1000);
constexpr std::int64_t kWantedMs = 3000;  // after the last question
constexpr std::int64_t kAnswerMs = 3000;

constexpr Statement kSessions{"sessions", "SELECT " CODBAND_SESSION_NAME
                                          " FROM pg_stat_activity WHERE backend_start IS NOT NULL"};

}  // namespace

SessionWatch::SessionWatch(Connection::Options options)
    : options_([&] {
        options.timeout_ms = kAnswerMs;
        return std::move(options);
      }()),
      thread_([this] { Run(); }) {}

SessionWatch::~SessionWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

SessionWatch::Found SessionWatch::Find(const std::string& session, std::int64_t since_ms) {
  const std::lock_guard lock(mutex_);
  wanted_until_ms_ = BootMillis() + kWantedMs;
  wake_.notify_one();
  if (looked_ms_ <= since_ms) return Found::kUnknown;
  return sessions_.contains(session) ? Found::kThere : Found::kGone;
}

std::optional<std::set<std::string>> SessionWatch::Look() const {
  const auto connection = Connection::Open(options_, stop_);
  if (!connection.ok()) return std::nullopt;
  const Reply reply = connection.value()->Run(kSessions, {});
  if (!reply.ok()) return std::nullopt;
  std::set<std::string> sessions;
  for (std::size_t i = 0; i < reply.rows.size(); ++i) sessions.insert(reply.rows.Bytes(i, 0));
  return sessions;
}

void SessionWatch::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || BootMillis() < wanted_until_ms_; });
    if (stop_) return;
    lock.unlock();
    const std::int64_t began_ms = BootMillis();
    auto sessions = Look();
    lock.lock();
    if (sessions) {
      sessions_ = std::move(*sessions);
      looked_ms_ = began_ms;
    }
    wake_.wait_for(lock, kPause, [&] { return stop_.load(); });
  }
}

}  // namespace codband::cluster
