#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "codband/server/http/http_error.h"
#include "codband/server/http/reply.h"
#include "codband/server/http/request_reader.h"
#include "codband/server/http/route_metrics.h"
#include "codband/server/http/router.h"
#include "codband/server/http/worker.h"

namespace codband::server {

// What a server knows about itself.
struct ServerFacts {
  std::uint64_t connections = 0;            // open now
  std::uint64_t connections_accepted = 0;   // since the start
  std::uint64_t connections_refused = 0;    // because too many were open
  std::uint64_t connections_displaced = 0;  // closed to make room for others
  std::uint64_t max_connections = 0;        // that may be open at a time
  std::int64_t start_time_ms = 0;
  std::int64_t now_ms = 0;
};

// The server as a service sees it. Safe from any thread.
class ServerView {
 public:
  virtual ServerFacts Facts() const = 0;
  // Summed over all threads: one element per route, then one for requests without a route.
  virtual std::vector<RouteMetrics::Totals> RouteTotals() const = 0;

 protected:
  ~ServerView() = default;
};

// The body of a reply that goes on, as of server-sent events. Belongs to the thread of its call's
// worker.
class ReplyStream {
 public:
  virtual ~ReplyStream() = default;
  // Appends what comes next, perhaps nothing, after a wait of a quarter of a second at most. False:
  // it ends. Throws nothing.
  virtual Awaitable<bool> Next(Worker& worker, std::string& out) = 0;
};

// One request to be answered. Everything is borrowed, and lives until the reply is complete.
struct Call {
  Worker& worker;  // whose thread handles the call
  const ServerView& server;
  const RouteMatch& match;  // found
  const RequestHead& head;
  const boost::asio::ip::address& client;
  std::string_view body;  // empty if the body is streamed
  Reply& reply;
};

// Handles a streamed body. Belongs to the thread of its call's worker.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Takes the next piece; `last` comes with the final one, which may be empty. The reply is
  // complete after the last piece, or once it returns false: then no more pieces are wanted.
  // Throws nothing.
  virtual Awaitable<bool> Take(std::string_view piece, bool last) = 0;
};

// What a server serves: a table of routes and their handlers. The server reads requests, finds
// their routes, checks key and limits, and writes the replies. All functions may be called from
// every worker's thread at once.
class Service {
 public:
  virtual ~Service() = default;

  // The same at every call; outlives the service.
  virtual const Router& router() const = 0;

  // Called once, before the first request, with the number of workers; their indices are below it.
  virtual void Start(std::size_t workers) = 0;
  // Called when the server begins to stop: what takes long should end early. Requests still come.
  virtual void BeginStop() {}
  // Called once no worker runs any more: waits for the service's own threads. Safe to call twice.
  virtual void Stop() = 0;

  // Answers a request whose body is not streamed. Throws nothing.
  virtual Awaitable<void> Handle(Call& call) = 0;
  // For a route with a streamed body; `announced_bytes` is its length if the request says it.
  virtual std::unique_ptr<BodyStream> OpenStream(const Call& call,
                                                 std::optional<std::uint64_t> announced_bytes) = 0;

  // Makes the reply an error, in the format of the service.
  virtual void SetError(Reply& reply, const HttpError& error) const = 0;
};

}  // namespace codband::server
