#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/http_client.h"
#include "codband/server/http/worker.h"

namespace codband::server {

// A request as it is passed on. Everything is borrowed.
struct PeerRequest {
  std::string_view method = {};
  std::string_view target = {};
  std::string_view fields = {};  // "Name: value\r\n" each
  std::string_view body = {};    // JSON
};

// The connections of one worker to other nodes, which are kept and used again. A request is written
// and its reply read on the worker's own thread, without another one: passing a request on costs
// little more than reading it. Belongs to the worker's thread. It ends before the worker does, when
// nothing is under way.
class Peers {
 public:
  // `pool`, for what blocks: names that must be resolved, and TLS. Both outlive it.
  Peers(Worker& worker, boost::asio::thread_pool& pool, std::chrono::milliseconds timeout);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Any reply with a status from 200 to 599 and at most 64 MiB is one; anything else is an error.
  // `sent`: the request may have been handled, whatever becomes of its reply.
  Awaitable<Result<HttpReply>> Send(const std::string& url, const PeerRequest& request, bool& sent);

 private:
  using Clock = std::chrono::steady_clock;
  using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
  // Where a node is: its addresses are found once.
  struct Place {
    HttpUrl url = {};
    std::string authority = {};
    std::vector<asio::ip::tcp::endpoint> addresses = {};
  };
  struct Link;
  class Busy;

  Awaitable<Status> Find(const std::string& url, Place& place);
  Awaitable<Status> Connect(Link& link, const Place& place);
  Awaitable<Status> Write(Link& link, const std::string& bytes);
  Awaitable<Status> Read(Link& link, HttpReply& reply, bool& keep);
  Awaitable<Result<HttpReply>> SendByTls(const std::string& url, const PeerRequest& request,
                                         bool& sent);
  void Tick();

  Worker& worker_;
  boost::asio::thread_pool& pool_;
  const std::chrono::milliseconds timeout_;
  std::map<std::string, std::shared_ptr<const Place>> places_;
  std::map<std::string, std::vector<std::unique_ptr<Link>>> idle_;  // newest last
  std::list<Link*> busy_;
  Timer timer_;
  bool ticking_ = false;
};

}  // namespace codband::server
