#pragma once

#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/server/api/evaluation.h"
#include "codband/server/api/json_value.h"
#include "codband/server/api/run_on.h"
#include "codband/server/http/gatekeeper.h"
#include "codband/server/http/server.h"
#include "codband/server/http/service.h"

namespace codband::server {

class DecisionLog;
class LiveFeed;
struct HistoryEvent;
struct HistoryOutcome;

struct ApiOptions {
  std::string mode = {};                      // of the engine, shown on the page: "online"
  const DecisionLog* decision_log = nullptr;  // for the metrics; outlives the API
  std::filesystem::path backup_root = {};     // where POST /v1/backup writes; empty: nowhere
  Gatekeeper* gatekeeper = nullptr;           // of the server, which sets it; nullptr: no keys
  bool tls = false;                           // of the server, which sets it
  std::string settings = {};                  // SettingsJson
  std::filesystem::path log_directory = {};   // of decisions; empty: there is none
  std::string user_from = {};  // path in the context of the user's id, where a request names none
};

// The HTTP API of an engine: JSON in, a call of the engine, JSON out. docs/http_api.md describes
// it; the table in routes.cc lists every route with its handler.
class Api final : public Service {
 public:
  // The engine outlives the API. `max_line_bytes` bounds one line of a bulk import.
  Api(engine::Engine& engine, std::size_t max_line_bytes, ApiOptions options = {});
  ~Api() override;

  // Every route. Static: tests hold the documents to it.
  static std::span<const Route> Routes();

  const Router& router() const override;
  void Start(std::size_t workers) override;
  void BeginStop() override { evaluations_.End(); }
  void Stop() override;
  Awaitable<void> Handle(Call& call) override;
  std::unique_ptr<BodyStream> OpenStream(const Call& call,
                                         std::optional<std::uint64_t> announced_bytes) override;
  void SetError(Reply& reply, const HttpError& error) const override;

 private:
  // A row of the table has one of the two, as the body of its route is streamed or not.
  using Handler = Awaitable<void> (Api::*)(Call& call);
  using StreamOpener = std::unique_ptr<BodyStream> (Api::*)(const Call& call,
                                                            std::optional<std::uint64_t> bytes);
  struct Row {
    Route route;
    Handler handler = nullptr;
    StreamOpener open_stream = nullptr;
  };
  static std::span<const Row> Table();

  Awaitable<void> Rank(Call& call);
  Awaitable<void> Reward(Call& call);
  Awaitable<void> Activate(Call& call);
  std::unique_ptr<BodyStream> ImportItems(const Call& call,
                                          std::optional<std::uint64_t> announced_bytes);
  Awaitable<void> ListItems(Call& call);
  Awaitable<void> ImportHistory(Call& call);
  Awaitable<void> PutItem(Call& call);
  Awaitable<void> GetItem(Call& call);
  Awaitable<void> DeleteItem(Call& call);
  Awaitable<void> GetUser(Call& call);
  Awaitable<void> ForgetUser(Call& call);
  Awaitable<void> GetErasure(Call& call);
  Awaitable<void> ListModels(Call& call);
  Awaitable<void> GetModel(Call& call);
  Awaitable<void> ListChanges(Call& call);
  Awaitable<void> ListFeatures(Call& call);
  Awaitable<void> Backup(Call& call);
  Awaitable<void> Alive(Call& call);
  Awaitable<void> Ready(Call& call);
  Awaitable<void> Metrics(Call& call);
  Awaitable<void> OpenApi(Call& call);
  // dashboard.cc:
  Awaitable<void> Page(Call& call);
  Awaitable<void> Script(Call& call);
  Awaitable<void> Style(Call& call);
  Awaitable<void> Icon(Call& call);
  Awaitable<void> Stats(Call& call);
  Awaitable<void> Live(Call& call);
  Awaitable<void> GetSession(Call& call);
  Awaitable<void> OpenSession(Call& call);
  Awaitable<void> CloseSession(Call& call);
  Awaitable<void> Settings(Call& call);
  Awaitable<void> ListKeys(Call& call);
  Awaitable<void> ListLogs(Call& call);
  std::unique_ptr<BodyStream> Evaluate(const Call& call,
                                       std::optional<std::uint64_t> announced_bytes);
  std::string MakeLive(const ServerView& server);
  // personalizer.cc:
  Awaitable<void> PersonalizerRank(Call& call);
  Awaitable<void> PersonalizerReward(Call& call);
  Awaitable<void> MultiSlotRank(Call& call);
  Awaitable<void> MultiSlotReward(Call& call);
  Awaitable<Status> ActivateAll(Call& call, std::vector<std::string> events);
  Awaitable<void> MultiSlotActivate(Call& call);
  Awaitable<Result<engine::RewardReply>> AwaitReward(Call& call, std::string event_id,
                                                     double value);

  // A change of what the path's id names: 204 once it is durable.
  using EngineChange = void (engine::Engine::*)(std::string id, engine::Engine::Done<Status> done);
  Awaitable<void> ChangeById(Call& call, EngineChange change);

  // Ranks and rewards events together, the first of which has this index, and counts what became of
  // them. An error may be that of the moment: the request may be repeated.
  Awaitable<Status> LearnHistory(Worker& worker, std::span<HistoryEvent> events, std::size_t first,
                                 HistoryOutcome& outcome);

  // The parser of the call's thread. What it parses lives until its next use.
  JsonParser& ParserOf(const Call& call) { return parsers_[call.worker.index()]; }

  engine::Engine& engine_;
  const std::size_t max_line_bytes_;
  const ApiOptions options_;
  std::vector<JsonParser> parsers_;  // one for each worker
  // Reports score every item for every model and backups copy files: both would block a worker's
  // connections for too long.
  boost::asio::thread_pool reports_{1};
  boost::asio::thread_pool backups_{1};
  EvaluationDesk evaluations_;
  std::mutex live_mutex_;
  std::unique_ptr<LiveFeed> live_;  // made with the first dashboard
};

// A server for the API of the engine, which outlives it.
Result<std::unique_ptr<Server>> StartServer(engine::Engine& engine, const ServerOptions& options,
                                            ApiOptions api_options = {});

}  // namespace codband::server
