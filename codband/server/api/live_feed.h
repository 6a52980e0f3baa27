#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "codband/server/http/service.h"

namespace codband::server {

// What all open dashboards are told, once a second: made at most so often, however many are open,
// and not at all if none is. Thread-safe.
class LiveFeed {
 public:
  using Clock = std::chrono::steady_clock;
  struct News {
    std::uint64_t number = 0;                      // 0: there are none yet
    std::shared_ptr<const std::string> json = {};  // shared by the streams that write it
  };

  // `make` runs on the pool, which ends before the feed.
  LiveFeed(boost::asio::thread_pool& pool, std::function<std::string()> make)
      : pool_(pool), make_(std::move(make)) {}

  // The latest news. If they are older than a second new ones are made, for the next call.
  News Latest();

 private:
  boost::asio::thread_pool& pool_;
  const std::function<std::string()> make_;
  std::mutex mutex_;  // guards what follows
  News news_;
  Clock::time_point made_ = {};
  bool making_ = false;
};

// One open dashboard: server-sent events of type "live". The feed outlives it.
class LiveStream final : public ReplyStream {
 public:
  explicit LiveStream(LiveFeed& feed) : feed_(feed) {}
  Awaitable<bool> Next(Worker& worker, std::string& out) override;

 private:
  LiveFeed& feed_;
  std::uint64_t seen_ = 0;
  bool greeted_ = false;
};

}  // namespace codband::server
