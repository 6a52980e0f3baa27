#include "codband/server/cluster/cluster_service.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "codband/server/api/api_error.h"
#include "codband/server/http/http_client.h"

namespace codband::server {
namespace {

// A request that is passed on blocks a thread while the other node works on it.
constexpr std::size_t kForwards = 16;
constexpr std::chrono::milliseconds kForwardTimeout(10'000);

std::string_view PathOf(const Call& call) { return call.match.route->pattern; }

bool CanBeForwarded(std::string_view path) {
  return (path.starts_with("/v1/") || path.starts_with("/personalizer/")) && path != "/v1/live" &&
         path != "/v1/session" && path != "/v1/backup";
}

// The connections of this thread, by URL.
Result<HttpReply> SendTo(const std::string& url, const HttpRequest& request) {
  thread_local std::map<std::string, std::unique_ptr<HttpClient>> clients;
  std::unique_ptr<HttpClient>& client = clients[url];
  if (client == nullptr) {
    const auto parsed = ParseHttpUrl(url);
    if (!parsed.ok()) return parsed.status();
    auto connected = HttpClient::Connect(parsed.value(), kForwardTimeout);
    if (!connected.ok()) return connected.status();
    client = std::move(connected).value();
  }
  auto reply = client->Send(request, kForwardTimeout);
  if (!reply.ok()) client.reset();
  return reply;
}

}  // namespace

// What answers with one engine. Whoever uses it holds it.
struct ClusterService::Served {
  Served(engine::Engine& engine, std::size_t max_line_bytes, const ApiOptions& options)
      : api(engine, max_line_bytes, options) {}

  Api api;
  std::atomic<bool> ends{false};
};

// A reply that goes on ends when its engine does.
class ClusterService::HeldReply final : public ReplyStream {
 public:
  HeldReply(std::shared_ptr<Served> served, std::shared_ptr<ReplyStream> stream)
      : served_(std::move(served)), stream_(std::move(stream)) {}
  Awaitable<bool> Next(Worker& worker, std::string& out) override {
    if (served_->ends) co_return false;
    const bool more = co_await stream_->Next(worker, out);
    co_return more;
  }

 private:
  std::shared_ptr<Served> served_;
  std::shared_ptr<ReplyStream> stream_;  // of what is served: goes first
};

class ClusterService::HeldBody final : public BodyStream {
 public:
  HeldBody(std::shared_ptr<Served> served, std::unique_ptr<BodyStream> stream)
      : served_(std::move(served)), stream_(std::move(stream)) {}
  Awaitable<bool> Take(std::string_view piece, bool last) override {
    return stream_->Take(piece, last);
  }

 private:
  std::shared_ptr<Served> served_;
  std::unique_ptr<BodyStream> stream_;
};

class ClusterService::RefusedBody final : public BodyStream {
 public:
  Awaitable<bool> Take(std::string_view, bool) override { co_return false; }
};

ClusterService::ClusterService(std::size_t max_line_bytes, ApiOptions options,
                               std::function<std::string()> owner)
    : max_line_bytes_(max_line_bytes),
      options_(std::move(options)),
      owner_(std::move(owner)),
      forwards_(kForwards) {}

ClusterService::~ClusterService() { Stop(); }

void ClusterService::Stop() {
  SetEngine(nullptr);
  forwards_.join();
}

std::shared_ptr<ClusterService::Served> ClusterService::Current() const {
  const std::lock_guard lock(mutex_);
  return served_;
}

void ClusterService::SetEngine(engine::Engine* engine) {
  std::shared_ptr<Served> next;
  if (engine != nullptr) {
    next = std::make_shared<Served>(*engine, max_line_bytes_, options_);
    next->api.Start(workers_);
  }
  std::shared_ptr<Served> former;
  {
    const std::lock_guard lock(mutex_);
    former = std::exchange(served_, std::move(next));
  }
  if (former == nullptr) return;
  former->ends = true;
  // Nobody can get it any more, and everybody who has it ends soon.
  while (former.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

const Router& ClusterService::router() const {
  static const Router router(Api::Routes());
  return router;
}

void ClusterService::SetError(Reply& reply, const HttpError& error) const {
  SetApiError(reply, error);
}

void ClusterService::SetNotHere(Reply& reply, const std::string& owner) const {
  SetApiError(reply, {.status = 503,
                      .code = "Unavailable",
                      .message = owner.empty() ? "no node serves this now; one will in some seconds"
                                               : fmt::format("ask the node at {}", owner),
                      .retry_after_s = 1});
}

Awaitable<void> ClusterService::Handle(Call& call) {
  if (PathOf(call) == "/v1/health/live") {
    call.reply.body = R"({"status":"live"})";
    co_return;
  }
  if (const auto served = Current()) {
    co_await served->api.Handle(call);
    if (call.reply.stream != nullptr) {
      call.reply.stream = std::make_shared<HeldReply>(served, std::move(call.reply.stream));
    }
    co_return;
  }
  co_await Forward(call);
}

Awaitable<void> ClusterService::Forward(Call& call) {
  const std::string owner = owner_();
  // One that was passed on to us shows that the other node's map is older or newer than ours.
  if (owner.empty() || call.head.forwarded || !CanBeForwarded(PathOf(call))) {
    SetNotHere(call.reply, call.head.forwarded ? "" : owner);
    co_return;
  }
  HttpRequest request{.method = call.head.method,
                      .target = call.head.target,
                      .headers = {{kForwardedHeader, "1"}},
                      .body = std::string(call.body)};
  if (!call.head.api_key.empty()) request.headers.emplace_back("X-API-Key", call.head.api_key);
  Pending<Result<HttpReply>> pending(call.worker);
  RunOn(forwards_, pending, [&] { return SendTo(owner, request); });
  co_await pending.Wait();
  const Result<HttpReply> reply = pending.Take();
  if (!reply.ok()) {
    // Perhaps it has died. What it was asked may have happened: the client tries again.
    SetNotHere(call.reply, "");
    co_return;
  }
  call.reply.status = static_cast<int>(reply.value().status);
  call.reply.body = reply.value().body;
}

std::unique_ptr<BodyStream> ClusterService::OpenStream(
    const Call& call, std::optional<std::uint64_t> announced_bytes) {
  if (auto served = Current()) {
    auto stream = served->api.OpenStream(call, announced_bytes);
    return std::make_unique<HeldBody>(std::move(served), std::move(stream));
  }
  SetNotHere(call.reply, owner_());
  return std::make_unique<RefusedBody>();
}

}  // namespace codband::server
