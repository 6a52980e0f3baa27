// The handlers of what the dashboard needs beside the API: its files, sessions, curves, news.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "codband/base/parse.h"
#include "codband/base/time.h"
#include "codband/server/api/api.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/api/evaluation.h"
#include "codband/server/api/json_text.h"
#include "codband/server/api/live_feed.h"
#include "codband/server/api/request_json.h"
#include "codband/server/api/stats_json.h"
#include "codband/server/api/web_bundle.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kMostPoints = 10'000;
constexpr std::size_t kLiveChanges = 30;

// Nothing but the server's own files, and no code or style in the page itself.
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-cache\r\n";

void SetFile(const Call& call, const WebFile& file, std::string_view type) {
  call.reply.content_type = type;
  call.reply.headers += kPageHeaders;
  if (call.head.accepts_gzip && !file.gzip.empty()) {
    call.reply.headers += "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
    call.reply.body = file.gzip;
  } else {
    call.reply.body = file.plain;
  }
}

std::string Cookie(std::string_view token, std::string_view more, bool secure) {
  return fmt::format("Set-Cookie: {}={}; Path=/; HttpOnly; SameSite=Strict{}{}\r\n", kSessionCookie,
                     token, more, secure ? "; Secure" : "");
}

Json SessionJson(const Gatekeeper::SessionFacts& facts) {
  return {{"keyRequired", true},
          {"role", AccessText(facts.role)},
          {"name", facts.name},
          {"csrfToken", facts.csrf}};
}

struct StatsQuery {
  std::int64_t from_ms = 0, to_ms = 0, step_ms = 0;
};

Result<StatsQuery> ParseStats(std::string_view text, std::int64_t now_ms) {
  constexpr std::array<std::string_view, 3> kKnown = {"from", "to", "step"};
  const auto query = ParseQuery(text, kKnown);
  if (!query.ok()) return query.status();
  StatsQuery stats{.from_ms = -1, .to_ms = now_ms + kMinuteMs, .step_ms = kMinuteMs};
  for (const auto& [name, value] : query.value()) {
    const auto time = ParseTime(value);
    if (name == "step") {
      const auto seconds = ParseNumber<std::int64_t>(value);
      if (!seconds || *seconds <= 0 || *seconds % 60 != 0 || *seconds > 86'400) {
        return Status::InvalidArgument(fmt::format(
            "step: is '{}', expected whole minutes in seconds, from 60 to 86400", value));
      }
      stats.step_ms = *seconds * 1000;
    } else if (!time || *time < 0) {
      return Status::InvalidArgument(fmt::format(
          "{}: is '{}', expected a time such as 2019-07-07T12:00:00Z, or seconds", name, value));
    } else {
      (name == "from" ? stats.from_ms : stats.to_ms) = *time;
    }
  }
  if (stats.from_ms < 0) stats.from_ms = std::max<std::int64_t>(0, stats.to_ms - 3'600'000);
  if (stats.from_ms >= stats.to_ms) {
    return Status::InvalidArgument("from: is not before 'to'");
  }
  if ((stats.to_ms - stats.from_ms) / stats.step_ms > kMostPoints) {
    return Status::InvalidArgument(
        fmt::format("step: gives more than {} points, expected a larger one", kMostPoints));
  }
  return stats;
}

}  // namespace

std::string Api::MakeLive(const ServerView& server) {
  LiveFacts facts{.mode = options_.mode,
                  .server = server.Facts(),
                  .stats = engine_.Stats(),
                  .changes = engine_.RecentChanges(kLiveChanges)};
  const std::int64_t minute = facts.server.now_ms / kMinuteMs * kMinuteMs;
  facts.minute = engine_.Series(minute, minute + kMinuteMs, kMinuteMs);
  if (options_.decision_log != nullptr) {
    const DecisionLogStats log = options_.decision_log->Stats();
    facts.log_lost = log.failed + log.dropped;
  }
  return LiveJson(facts);
}

Awaitable<void> Api::Stats(Call& call) {
  const auto query = ParseStats(call.match.query, call.server.Facts().now_ms);
  if (!query.ok()) co_return SetApiError(call.reply, query.status());
  const StatsQuery& stats = query.value();
  // A year of hours is megabytes of JSON.
  Pending<std::string> report(call.worker);
  RunOn(reports_, report, [this, stats] {
    std::string json;
    AppendSeries(json, engine_.Series(stats.from_ms, stats.to_ms, stats.step_ms), stats.from_ms,
                 stats.to_ms);
    return json;
  });
  co_await report.Wait();
  call.reply.body = report.Take();
}

Awaitable<void> Api::Live(Call& call) {
  {
    const std::lock_guard lock(live_mutex_);
    if (live_ == nullptr) {
      live_ = std::make_unique<LiveFeed>(
          reports_, [this, server = &call.server] { return MakeLive(*server); });
    }
  }
  call.reply.content_type = "text/event-stream";
  call.reply.headers += "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
  call.reply.stream = std::make_shared<LiveStream>(*live_);
  co_return;
}

Awaitable<void> Api::GetSession(Call& call) {
  Json json{{"keyRequired", options_.gatekeeper != nullptr}};
  if (options_.gatekeeper == nullptr) {
    json["role"] = AccessText(Access::kAdmin);
  } else if (const auto facts = call.head.session.empty()
                                    ? std::nullopt
                                    : options_.gatekeeper->FindSession(call.head.session)) {
    json = SessionJson(*facts);
  } else {
    json["role"] = nullptr;
  }
  call.reply.headers += "Cache-Control: no-store\r\n";
  call.reply.body = JsonText(json);
  co_return;
}

Awaitable<void> Api::OpenSession(Call& call) {
  const Result<std::string> key = ParseLogin(ParserOf(call), call.body);
  if (!key.ok()) co_return SetApiError(call.reply, key.status());
  if (options_.gatekeeper == nullptr) {
    co_return SetApiError(
        call.reply,
        {.status = 409, .code = "Conflict", .field = "key", .message = "this server needs none"});
  }
  auto opened = options_.gatekeeper->OpenSession(call.client, key.value());
  if (const auto* error = std::get_if<HttpError>(&opened)) {
    HttpError told = *error;
    told.field = "key";
    co_return SetApiError(call.reply, told);
  }
  const auto& session = std::get<Gatekeeper::Opened>(opened);
  call.reply.headers += Cookie(session.token, "", options_.tls);
  call.reply.headers += "Cache-Control: no-store\r\n";
  call.reply.body = JsonText(SessionJson(session.facts));
}

Awaitable<void> Api::CloseSession(Call& call) {
  if (options_.gatekeeper != nullptr) options_.gatekeeper->CloseSession(call.head.session);
  call.reply.headers += Cookie("", "; Max-Age=0", options_.tls);
  call.reply.status = 204;
  co_return;
}

Awaitable<void> Api::Settings(Call& call) {
  call.reply.body = options_.settings.empty() ? R"({"settings":[]})" : options_.settings;
  co_return;
}

Awaitable<void> Api::ListKeys(Call& call) {
  Json keys = Json::array();
  if (options_.gatekeeper != nullptr) {
    for (const Gatekeeper::KeyUse& key : options_.gatekeeper->ListKeys()) {
      keys.push_back(
          {{"name", key.name},
           {"role", AccessText(key.role)},
           {"lastUse", key.last_use_ms ? Json(FormatRfc3339(*key.last_use_ms)) : Json(nullptr)}});
    }
  }
  const Json json{{"required", options_.gatekeeper != nullptr}, {"keys", std::move(keys)}};
  call.reply.body = JsonText(json);
  co_return;
}

Awaitable<void> Api::ListLogs(Call& call) {
  call.reply.body = ListLogsJson(options_.log_directory);
  co_return;
}

std::unique_ptr<BodyStream> Api::Evaluate(const Call& call,
                                          std::optional<std::uint64_t> /*announced_bytes*/) {
  return std::make_unique<EvaluationStream>(call, evaluations_, options_.log_directory);
}

Awaitable<void> Api::Page(Call& call) {
  SetFile(call, kWebPage, "text/html; charset=utf-8");
  co_return;
}

Awaitable<void> Api::Script(Call& call) {
  SetFile(call, kWebScript, "text/javascript; charset=utf-8");
  co_return;
}

Awaitable<void> Api::Style(Call& call) {
  SetFile(call, kWebStyle, "text/css; charset=utf-8");
  co_return;
}

Awaitable<void> Api::Icon(Call& call) {
  SetFile(call, kWebIcon, "image/svg+xml");
  co_return;
}

}  // namespace codband::server
