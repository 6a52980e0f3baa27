#include "codband/server/api/live_feed.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <exception>

namespace codband::server {

LiveFeed::News LiveFeed::Latest() {
  constexpr std::chrono::milliseconds kEvery(950);
  const std::lock_guard lock(mutex_);
  if (!making_ && Clock::now() - made_ >= kEvery) {
    making_ = true;
    asio::post(pool_, [this] {
      std::shared_ptr<const std::string> json;
      try {
        json = std::make_shared<const std::string>(make_());
      } catch (const std::exception&) {
        // Want of memory: the next second tries again.
      }
      const std::lock_guard made(mutex_);
      making_ = false;
      made_ = Clock::now();
      if (json != nullptr) news_ = {.number = news_.number + 1, .json = std::move(json)};
    });
  }
  return news_;
}

Awaitable<bool> LiveStream::Next(Worker& worker, std::string& out) {
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  if (!greeted_) {
    greeted_ = true;
    out += "retry: 2000\n\n";
    co_return true;
  }
  const LiveFeed::News news = feed_.Latest();
  if (news.number != seen_) {
    seen_ = news.number;
    out += "event: live\ndata: ";
    out += *news.json;
    out += "\n\n";
    co_return true;
  }
  Timer timer(worker.io().get_executor());
  timer.expires_after(std::chrono::milliseconds(200));
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(kUseAwaitable, ignored));
  co_return true;
}

}  // namespace codband::server
