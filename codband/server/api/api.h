#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/server/api/item_import.h"
#include "codband/server/http/http_error.h"
#include "codband/server/http/reply.h"
#include "codband/server/http/router.h"
#include "codband/server/http/server.h"
#include "codband/server/http/worker.h"

namespace codband::server {

void SetError(Reply& reply, const HttpError& error);

// Answers requests: body in, engine, body out. One for all workers; its functions may be called
// from each of them at once.
class Api {
 public:
  // `metrics` renders /metrics, `facts` tells the page when the server started.
  struct Sources {
    std::function<std::string()> metrics;
    std::function<ServerFacts()> facts;
  };
  Api(engine::Engine& engine, const ServerOptions& options, Sources sources);
  // Waits for what runs on its own threads.
  ~Api() { Stop(); }
  void Stop();

  engine::Engine& engine() { return engine_; }

  // Whether the key opens the route.
  bool Authorised(const RouteMatch& match, std::string_view key) const;

  // Any route but the import. Throws nothing; fills in the reply.
  Awaitable<void> Handle(Worker& worker, const RouteMatch& match, std::string_view body,
                         Reply& reply);

  // Puts the items that `import` has ready into the catalogue.
  Awaitable<Status> PutReady(Worker& worker, ItemImport& import);

 private:
  Awaitable<void> Dispatch(Worker& worker, const RouteMatch& match, std::string_view body,
                           Reply& reply);
  Awaitable<void> Rank(Worker& worker, const RouteMatch& match, std::string_view body,
                       Reply& reply);
  Awaitable<void> Reward(Worker& worker, const RouteMatch& match, std::string_view body,
                         Reply& reply);
  Awaitable<void> ChangeById(Worker& worker, const RouteMatch& match, std::string_view body,
                             Reply& reply);
  Awaitable<void> Models(Worker& worker, const RouteMatch& match, Reply& reply);
  Awaitable<void> Backup(Worker& worker, std::string_view body, Reply& reply);
  Awaitable<void> Page(Worker& worker, Reply& reply);
  void Read(const RouteMatch& match, Reply& reply);
  void Ready(Reply& reply);
  void Changes(const RouteMatch& match, Reply& reply);

  engine::Engine& engine_;
  std::string api_key_;
  std::string mode_;
  Sources sources_;
  // Reports look at every item for every model, and backups copy files: both take longer than a
  // connection's thread may be held up.
  asio::thread_pool reports_{1};
  asio::thread_pool backups_{1};
};

}  // namespace codband::server
