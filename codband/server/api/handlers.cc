// The handlers of the routes in routes.cc.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "codband/base/parse.h"
#include "codband/server/api/api.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/backups.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/api/import_stream.h"
#include "codband/server/api/metrics.h"
#include "codband/server/api/openapi.h"
#include "codband/server/api/reply_json.h"
#include "codband/server/api/request_json.h"

namespace codband::server {
namespace {

constexpr std::size_t kMaxTop = 1000;        // items and tags of a model
constexpr std::size_t kMaxItems = 1000;      // of a page
constexpr std::size_t kMaxChanges = 10'000;  // of a request; the engine keeps fewer

// The query parameter as a whole number in [1, max]; `otherwise` if it is not given. It is the only
// parameter of its route.
Result<std::size_t> CountParameter(const RouteMatch& match, std::string_view name, std::size_t max,
                                   std::size_t otherwise) {
  const std::array<std::string_view, 1> known = {name};
  const Result<Query> query = ParseQuery(match.query, known);
  if (!query.ok()) return query.status();
  if (query.value().empty()) return otherwise;
  const std::string& text = query.value().front().second;
  const std::optional<std::size_t> value = ParseNumber<std::size_t>(text);
  if (!value || *value == 0 || *value > max) {
    return Status::InvalidArgument(
        fmt::format("{}: is '{}', expected a whole number from 1 to {}", name, text, max));
  }
  return *value;
}

Result<bool> FlagParameter(std::string_view name, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Status::InvalidArgument(fmt::format("{}: is '{}', expected true or false", name, text));
}

Result<bool> ExplainParameter(const RouteMatch& match) {
  if (match.query.empty()) return false;
  constexpr std::array<std::string_view, 1> kKnown = {"explain"};
  const Result<Query> query = ParseQuery(match.query, kKnown);
  if (!query.ok()) return query.status();
  if (query.value().empty()) return false;
  return FlagParameter("explain", query.value().front().second);
}

// A page of the items that begin with `prefix`.
std::vector<engine::Item> ItemsOf(const engine::Engine& engine, const std::string& after,
                                  const std::string& prefix, std::size_t limit) {
  if (prefix.empty()) return engine.ListItems(after, limit);
  // The item of exactly this name comes before those that go on.
  const bool first = after < prefix;
  std::vector<engine::Item> items = engine.ListItems(first ? prefix : after, limit);
  std::erase_if(items, [&](const engine::Item& item) { return !item.id.starts_with(prefix); });
  if (!first) return items;
  if (Result<engine::Item> exact = engine.GetItem(prefix); exact.ok()) {
    items.insert(items.begin(), std::move(exact).value());
    if (items.size() > limit) items.pop_back();
  }
  return items;
}

// Completes the call from the engine's callback.
auto Completing(Pending<Status>& call) {
  return [&call](Status status) { call.Finish(std::move(status)); };
}

// Waits for a change to be durable: 204, or the error.
Awaitable<void> ReplyWhenDurable(Pending<Status>& change, Reply& reply) {
  co_await change.Wait();
  const Status status = change.Take();
  if (!status.ok()) co_return SetApiError(reply, status);
  reply.status = 204;
}

}  // namespace

Awaitable<void> Api::ChangeById(Call& call, EngineChange change) {
  Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  Pending<Status> durable(call.worker);
  (engine_.*change)(std::move(id).value(), Completing(durable));
  co_await ReplyWhenDurable(durable, call.reply);
}

Awaitable<void> Api::Rank(Call& call) {
  const Result<bool> explain = ExplainParameter(call.match);
  if (!explain.ok()) co_return SetApiError(call.reply, explain.status());
  Result<engine::RankRequest> request =
      ParseRank(ParserOf(call), call.body, engine_.dim(), options_.user_from);
  if (!request.ok()) co_return SetApiError(call.reply, request.status());
  request.value().explain = explain.value();
  Pending<Status> durable(call.worker);
  engine_.Rank(
      std::move(request).value(),
      [&call](const engine::RankReply& ranked) { AppendRankReply(call.reply.body, ranked); },
      Completing(durable));
  co_await durable.Wait();
  const Status status = durable.Take();
  if (!status.ok()) SetApiError(call.reply, status);
}

Awaitable<void> Api::Reward(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<double> value = ParseReward(ParserOf(call), call.body);
  if (!value.ok()) co_return SetApiError(call.reply, value.status());
  Pending<Result<engine::RewardReply>> durable(call.worker);
  engine_.Reward(id.value(), value.value(), [&durable](Result<engine::RewardReply> result) {
    durable.Finish(std::move(result));
  });
  co_await durable.Wait();
  const Result<engine::RewardReply> result = durable.Take();
  if (!result.ok()) co_return SetApiError(call.reply, result.status());
  switch (result.value().outcome) {
    case engine::RewardOutcome::kAccepted:
    case engine::RewardOutcome::kDuplicate:
      AppendRewardReply(call.reply.body, id.value(), result.value());
      break;
    case engine::RewardOutcome::kLate:
      SetApiError(call.reply,
                  {.status = 410,
                   .code = "Late",
                   .field = "eventId",
                   .message = "the event's wait for a reward is over; nothing is changed"});
      break;
    case engine::RewardOutcome::kUnknown:
      SetApiError(call.reply, {.status = 404,
                               .code = "NotFound",
                               .field = "eventId",
                               .message = "there is no such event"});
      break;
  }
}

Awaitable<void> Api::Activate(Call& call) { return ChangeById(call, &engine::Engine::Activate); }

std::unique_ptr<BodyStream> Api::ImportItems(const Call& call,
                                             std::optional<std::uint64_t> announced_bytes) {
  return std::make_unique<ImportStream>(engine_, ParserOf(call), call, max_line_bytes_,
                                        announced_bytes);
}

Awaitable<void> Api::PutItem(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  Result<engine::Item> item = ParseItem(ParserOf(call), call.body, engine_.dim(), id.value());
  if (!item.ok()) co_return SetApiError(call.reply, item.status());
  std::vector<engine::Item> items;
  items.push_back(std::move(item).value());
  Pending<Status> durable(call.worker);
  engine_.PutItems(std::move(items), Completing(durable));
  co_await ReplyWhenDurable(durable, call.reply);
}

Awaitable<void> Api::ListItems(Call& call) {
  constexpr std::array<std::string_view, 4> kKnown = {"after", "limit", "learned", "prefix"};
  const Result<Query> query = ParseQuery(call.match.query, kKnown);
  if (!query.ok()) co_return SetApiError(call.reply, query.status());
  std::string after;
  std::string prefix;
  std::size_t limit = 100;
  bool with_learned = false;
  for (const auto& [name, text] : query.value()) {
    if (name == "learned") {
      const auto flag = FlagParameter(name, text);
      if (!flag.ok()) co_return SetApiError(call.reply, flag.status());
      with_learned = flag.value();
      continue;
    }
    if (name == "after" || name == "prefix") {
      (name == "after" ? after : prefix) = text;
      continue;
    }
    const std::optional<std::size_t> value = ParseNumber<std::size_t>(text);
    if (!value || *value == 0 || *value > kMaxItems) {
      co_return SetApiError(call.reply, Status::InvalidArgument(fmt::format(
                                            "limit: is '{}', expected a whole number from 1 to {}",
                                            text, kMaxItems)));
    }
    limit = *value;
  }
  const std::vector<engine::Item> items = ItemsOf(engine_, after, prefix, limit);
  std::vector<std::optional<ItemDescription>> learned;
  if (with_learned) {
    for (const engine::Item& item : items) learned.push_back(engine_.DescribeItem(item.id));
  }
  AppendItems(call.reply.body, items, limit, learned);
}

Awaitable<void> Api::GetItem(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<engine::Item> item = engine_.GetItem(id.value());
  if (!item.ok()) co_return SetApiError(call.reply, item.status());
  AppendItem(call.reply.body, item.value(), engine_.DescribeItem(id.value()));
}

Awaitable<void> Api::DeleteItem(Call& call) {
  return ChangeById(call, &engine::Engine::DeleteItem);
}

Awaitable<void> Api::GetUser(Call& call) {
  const Result<std::string> id = DecodeId(call.match.raw_id);
  if (!id.ok()) co_return SetApiError(call.reply, id.status());
  const Result<engine::UserReport> user = engine_.GetUser(id.value());
  if (!user.ok()) co_return SetApiError(call.reply, user.status());
  AppendUser(call.reply.body, user.value());
}

Awaitable<void> Api::ForgetUser(Call& call) { return ChangeById(call, &engine::Engine::Forget); }

// Nodes of a cluster answer it themselves (ClusterService).
Awaitable<void> Api::GetErasure(Call& call) {
  SetApiError(call.reply, Status::NotFound("id: there is no such erasure; they are counted in a "
                                           "cluster alone, one server forgets at once"));
  co_return;
}

Awaitable<void> Api::ListModels(Call& call) {
  const Result<std::size_t> top = CountParameter(call.match, "top", kMaxTop, 10);
  if (!top.ok()) co_return SetApiError(call.reply, top.status());
  Pending<std::vector<engine::ModelReport>> report(call.worker);
  RunOn(reports_, report, [this, count = top.value()] { return engine_.Models(count); });
  co_await report.Wait();
  const std::vector<engine::ModelReport> models = report.Take();
  AppendModels(call.reply.body, models);
}

Awaitable<void> Api::GetModel(Call& call) {
  const Result<std::size_t> top = CountParameter(call.match, "top", kMaxTop, 10);
  if (!top.ok()) co_return SetApiError(call.reply, top.status());
  const Result<std::string> text = DecodeId(call.match.raw_id);
  if (!text.ok()) co_return SetApiError(call.reply, text.status());
  const std::optional<ModelId> id = ParseNumber<ModelId>(text.value());
  if (!id || *id == kNoModel) {
    co_return SetApiError(call.reply, Status::InvalidArgument("id: is not the number of a model"));
  }
  Pending<Result<engine::ModelReport>> report(call.worker);
  RunOn(reports_, report,
        [this, model = *id, count = top.value()] { return engine_.GetModel(model, count); });
  co_await report.Wait();
  const Result<engine::ModelReport> model = report.Take();
  if (!model.ok()) co_return SetApiError(call.reply, model.status());
  AppendModel(call.reply.body, model.value());
}

Awaitable<void> Api::ListChanges(Call& call) {
  const Result<std::size_t> limit = CountParameter(call.match, "limit", kMaxChanges, 100);
  if (!limit.ok()) co_return SetApiError(call.reply, limit.status());
  AppendChanges(call.reply.body, engine_.RecentChanges(limit.value()));
}

Awaitable<void> Api::ListFeatures(Call& call) {
  Pending<engine::FeatureReport> report(call.worker);
  RunOn(reports_, report, [this] { return engine_.Features(); });
  co_await report.Wait();
  AppendFeatures(call.reply.body, report.Take());
}

Awaitable<void> Api::Backup(Call& call) {
  const Result<std::string> name = ParseBackup(ParserOf(call), call.body);
  if (!name.ok()) co_return SetApiError(call.reply, name.status());
  Pending<Status> copied(call.worker);
  RunOn(backups_, copied,
        [this, &name] { return MakeBackup(engine_, options_.backup_root, name.value()); });
  co_await copied.Wait();
  const Status status = copied.Take();
  if (!status.ok()) co_return SetApiError(call.reply, status);
  call.reply.status = 201;
  AppendBackupReply(call.reply.body, name.value());
}

Awaitable<void> Api::Alive(Call& call) {
  call.reply.body = R"({"status":"live"})";
  co_return;
}

Awaitable<void> Api::Ready(Call& call) {
  const engine::EngineStats stats = engine_.Stats();
  if (stats.last_error.empty()) {
    call.reply.body = R"({"status":"ready"})";
    co_return;
  }
  SetApiError(call.reply,
              {.status = 503, .code = "NotReady", .message = stats.last_error, .retry_after_s = 5});
}

Awaitable<void> Api::Metrics(Call& call) {
  const std::vector<RouteMetrics::Totals> totals = call.server.RouteTotals();
  MetricsFacts facts{.routes = Routes(),
                     .totals = totals,
                     .server = call.server.Facts(),
                     .engine = engine_.Stats()};
  if (options_.decision_log != nullptr) facts.decision_log = options_.decision_log->Stats();
  call.reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  call.reply.body = RenderMetrics(facts);
  co_return;
}

Awaitable<void> Api::OpenApi(Call& call) {
  call.reply.body = kOpenApiJson;
  co_return;
}

}  // namespace codband::server
