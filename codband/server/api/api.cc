#include "codband/server/api/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <boost/asio/post.hpp>
#include <limits>
#include <optional>

#include "codband/base/parse.h"
#include "codband/server/api/openapi.h"
#include "codband/server/api/page.h"
#include "codband/server/api/reply_json.h"
#include "codband/server/api/request_json.h"
#include "codband/server/api/text.h"

namespace codband::server {
namespace {

constexpr std::size_t kMostTop = 1000;  // items and tags of a model
constexpr std::size_t kMostChanges = 10'000;

void Refuse(Reply& reply, const Status& status) { SetError(reply, ToHttpError(status)); }

// The parameter as a whole number in [1, most]; `otherwise` if it is not given.
Result<std::size_t> CountParameter(const Query& query, std::string_view name, std::size_t most,
                                   std::size_t otherwise) {
  for (const auto& [key, text] : query) {
    if (key != name) continue;
    const std::optional<std::size_t> value = ParseNumber<std::size_t>(text);
    if (!value || *value == 0 || *value > most) {
      return Status::InvalidArgument(
          fmt::format("{}: is '{}', expected a whole number from 1 to {}", name, text, most));
    }
    return *value;
  }
  return otherwise;
}

Result<std::size_t> CountOf(const RouteMatch& match, std::string_view name, std::size_t most,
                            std::size_t otherwise) {
  const std::array<std::string_view, 1> known = {name};
  const Result<Query> query = ParseQuery(match.query, known);
  if (!query.ok()) return query.status();
  return CountParameter(query.value(), name, most, otherwise);
}

Result<bool> ExplainOf(const RouteMatch& match) {
  if (match.query.empty()) return false;
  constexpr std::array<std::string_view, 1> kKnown = {"explain"};
  const Result<Query> query = ParseQuery(match.query, kKnown);
  if (!query.ok()) return query.status();
  if (query.value().empty()) return false;
  const std::string& text = query.value().front().second;
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Status::InvalidArgument(fmt::format("explain: is '{}', expected true or false", text));
}

// Runs `work` on the pool and hands its result to the call.
template <typename T, typename Work>
void RunOn(asio::thread_pool& pool, Pending<T>& call, Work work) {
  asio::post(pool, [&call, work = std::move(work)] {
    try {
      call.Finish(work());
    } catch (...) {
      call.Fail(std::current_exception());
    }
  });
}

}  // namespace

void SetError(Reply& reply, const HttpError& error) {
  reply.status = error.status;
  reply.content_type = Reply::kJson;
  reply.body.clear();
  if (error.retry_after_s > 0) {
    reply.headers += fmt::format("Retry-After: {}\r\n", error.retry_after_s);
  }
  AppendError(reply.body, error);
}

Api::Api(engine::Engine& engine, const ServerOptions& options, Sources sources)
    : engine_(engine),
      api_key_(options.api_key),
      mode_(options.mode),
      sources_(std::move(sources)) {}

void Api::Stop() {
  reports_.join();
  backups_.join();
}

bool Api::Authorised(const RouteMatch& match, std::string_view key) const {
  if (api_key_.empty() || (match.route != nullptr && match.route->open)) return true;
  return SameSecret(api_key_, key);
}

Awaitable<void> Api::Handle(Worker& worker, const RouteMatch& match, std::string_view body,
                            Reply& reply) {
  std::string problem;
  try {
    co_await Dispatch(worker, match, body, reply);
    co_return;
  } catch (const std::exception& error) {
    problem = error.what();
  } catch (...) {
    problem = "unknown exception";
  }
  reply.Reset();
  SetError(reply, {.status = 500, .code = "Internal", .message = problem});
}

Awaitable<void> Api::Dispatch(Worker& worker, const RouteMatch& match, std::string_view body,
                              Reply& reply) {
  switch (match.route->id) {
    case RouteId::kRank:
      co_return co_await Rank(worker, match, body, reply);
    case RouteId::kReward:
      co_return co_await Reward(worker, match, body, reply);
    case RouteId::kActivate:
    case RouteId::kPutItem:
    case RouteId::kDeleteItem:
    case RouteId::kForgetUser:
      co_return co_await ChangeById(worker, match, body, reply);
    case RouteId::kModels:
    case RouteId::kModel:
      co_return co_await Models(worker, match, reply);
    case RouteId::kBackup:
      co_return co_await Backup(worker, body, reply);
    case RouteId::kPage:
      co_return co_await Page(worker, reply);
    default:
      Read(match, reply);
  }
}

Awaitable<void> Api::Rank(Worker& worker, const RouteMatch& match, std::string_view body,
                          Reply& reply) {
  const Result<bool> explain = ExplainOf(match);
  if (!explain.ok()) co_return Refuse(reply, explain.status());
  Result<engine::RankRequest> request = ParseRank(body, engine_.dim());
  if (!request.ok()) co_return Refuse(reply, request.status());
  request.value().explain = explain.value();
  Pending<Status> call(worker);
  engine_.Rank(
      std::move(request).value(),
      [&reply](const engine::RankReply& ranked) { AppendRankReply(reply.body, ranked); },
      [call = &call](Status status) { call->Finish(std::move(status)); });
  co_await call.Wait();
  const Status status = call.Take();
  if (!status.ok()) Refuse(reply, status);
}

Awaitable<void> Api::Reward(Worker& worker, const RouteMatch& match, std::string_view body,
                            Reply& reply) {
  const Result<std::string> id = DecodeId(match.raw_id);
  if (!id.ok()) co_return Refuse(reply, id.status());
  const Result<double> value = ParseReward(body);
  if (!value.ok()) co_return Refuse(reply, value.status());
  Pending<Result<engine::RewardReply>> call(worker);
  engine_.Reward(id.value(), value.value(), [call = &call](Result<engine::RewardReply> result) {
    call->Finish(std::move(result));
  });
  co_await call.Wait();
  const Result<engine::RewardReply> result = call.Take();
  if (!result.ok()) co_return Refuse(reply, result.status());
  switch (result.value().outcome) {
    case engine::RewardOutcome::kAccepted:
    case engine::RewardOutcome::kDuplicate:
      AppendRewardReply(reply.body, id.value(), result.value());
      break;
    case engine::RewardOutcome::kLate:
      SetError(reply, {.status = 410,
                       .code = "Late",
                       .field = "eventId",
                       .message = "the event's wait for a reward is over; nothing is changed"});
      break;
    case engine::RewardOutcome::kUnknown:
      SetError(reply, {.status = 404,
                       .code = "NotFound",
                       .field = "eventId",
                       .message = "there is no such event"});
      break;
  }
}

Awaitable<void> Api::ChangeById(Worker& worker, const RouteMatch& match, std::string_view body,
                                Reply& reply) {
  Result<std::string> id = DecodeId(match.raw_id);
  if (!id.ok()) co_return Refuse(reply, id.status());
  Pending<Status> call(worker);
  const auto done = [call = &call](Status status) { call->Finish(std::move(status)); };
  if (match.route->id == RouteId::kPutItem) {
    Result<engine::Item> item = ParseItem(body, engine_.dim(), id.value());
    if (!item.ok()) co_return Refuse(reply, item.status());
    std::vector<engine::Item> items;
    items.push_back(std::move(item).value());
    engine_.PutItems(std::move(items), done);
  } else if (match.route->id == RouteId::kDeleteItem) {
    engine_.DeleteItem(std::move(id).value(), done);
  } else if (match.route->id == RouteId::kForgetUser) {
    engine_.Forget(std::move(id).value(), done);
  } else {
    engine_.Activate(std::move(id).value(), done);
  }
  co_await call.Wait();
  const Status status = call.Take();
  if (!status.ok()) co_return Refuse(reply, status);
  reply.status = 204;
}

Awaitable<Status> Api::PutReady(Worker& worker, ItemImport& import) {
  Pending<Status> call(worker);
  engine_.PutItems(import.Take(),
                   [call = &call](Status status) { call->Finish(std::move(status)); });
  co_await call.Wait();
  co_return call.Take();
}

Awaitable<void> Api::Models(Worker& worker, const RouteMatch& match, Reply& reply) {
  const Result<std::size_t> top = CountOf(match, "top", kMostTop, 10);
  if (!top.ok()) co_return Refuse(reply, top.status());
  if (match.route->id == RouteId::kModels) {
    Pending<std::vector<engine::ModelReport>> call(worker);
    RunOn(reports_, call, [this, count = top.value()] { return engine_.Models(count); });
    co_await call.Wait();
    const std::vector<engine::ModelReport> models = call.Take();
    co_return AppendModels(reply.body, models);
  }
  const Result<std::string> text = DecodeId(match.raw_id);
  if (!text.ok()) co_return Refuse(reply, text.status());
  const std::optional<ModelId> id = ParseNumber<ModelId>(text.value());
  if (!id || *id == kNoModel) {
    co_return Refuse(reply, Status::InvalidArgument("id: is not the number of a model"));
  }
  Pending<Result<engine::ModelReport>> call(worker);
  RunOn(reports_, call,
        [this, model = *id, count = top.value()] { return engine_.GetModel(model, count); });
  co_await call.Wait();
  const Result<engine::ModelReport> model = call.Take();
  if (!model.ok()) co_return Refuse(reply, model.status());
  AppendModel(reply.body, model.value());
}

Awaitable<void> Api::Backup(Worker& worker, std::string_view body, Reply& reply) {
  const Result<std::filesystem::path> directory = ParseBackup(body);
  if (!directory.ok()) co_return Refuse(reply, directory.status());
  Pending<Status> call(worker);
  RunOn(backups_, call, [this, path = directory.value()] { return engine_.Backup(path); });
  co_await call.Wait();
  const Status status = call.Take();
  if (!status.ok()) co_return Refuse(reply, status);
  reply.status = 201;
  reply.body += "{\"directory\":";
  AppendJsonString(reply.body, directory.value().native());
  reply.body += '}';
}

Awaitable<void> Api::Page(Worker& worker, Reply& reply) {
  Pending<std::string> call(worker);
  RunOn(reports_, call, [this] {
    const ServerFacts facts = sources_.facts();
    PageFacts page{.mode = mode_, .start_time_ms = facts.start_time_ms, .now_ms = facts.now_ms};
    page.connections = facts.connections;
    page.stats = engine_.Stats();
    page.models = engine_.Models(4);
    page.changes = engine_.RecentChanges(15);
    return RenderPage(page);
  });
  co_await call.Wait();
  reply.body = call.Take();
  reply.content_type = "text/html; charset=utf-8";
}

void Api::Read(const RouteMatch& match, Reply& reply) {
  switch (match.route->id) {
    case RouteId::kLive:
      reply.body = "{\"status\":\"live\"}";
      return;
    case RouteId::kReady:
      return Ready(reply);
    case RouteId::kMetrics:
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      reply.body = sources_.metrics();
      return;
    case RouteId::kOpenApi:
      reply.body = kOpenApiJson;
      return;
    case RouteId::kChanges:
      return Changes(match, reply);
    default:
      break;
  }
  const Result<std::string> id = DecodeId(match.raw_id);
  if (!id.ok()) return Refuse(reply, id.status());
  if (match.route->id == RouteId::kGetItem) {
    const Result<engine::Item> item = engine_.GetItem(id.value());
    if (!item.ok()) return Refuse(reply, item.status());
    return AppendItem(reply.body, item.value());
  }
  CODBAND_CHECK(match.route->id == RouteId::kGetUser);
  const Result<engine::UserReport> user = engine_.GetUser(id.value());
  if (!user.ok()) return Refuse(reply, user.status());
  AppendUser(reply.body, user.value());
}

void Api::Ready(Reply& reply) {
  const engine::EngineStats stats = engine_.Stats();
  if (!stats.last_error.empty()) {
    SetError(reply,
             {.status = 503, .code = "NotReady", .message = stats.last_error, .retry_after_s = 5});
    return;
  }
  reply.body = "{\"status\":\"ready\"}";
}

void Api::Changes(const RouteMatch& match, Reply& reply) {
  const Result<std::size_t> limit = CountOf(match, "limit", kMostChanges, 100);
  if (!limit.ok()) return Refuse(reply, limit.status());
  AppendChanges(reply.body, engine_.RecentChanges(limit.value()));
}

}  // namespace codband::server
