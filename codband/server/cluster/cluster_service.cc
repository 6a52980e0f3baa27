#include "codband/server/cluster/cluster_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <thread>
#include <utility>

#include "codband/server/api/api_error.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/api/personalizer_json.h"
#include "codband/server/api/request_json.h"
#include "codband/server/cluster/cluster_history.h"
#include "codband/server/cluster/node_report.h"

namespace codband::server {
namespace {

constexpr std::size_t kBlocking = 16;
constexpr std::chrono::milliseconds kForwardTimeout(5000);
// A request waits so long for a partition that nobody serves.
constexpr std::chrono::seconds kHoldPatience(10);
// It tries again after an eighth of the time that it has waited, within these bounds: a partition
// that is handed over is not waited for much longer than it takes, and one that nobody has costs
// its nodes few questions.
constexpr std::chrono::milliseconds kSoonest(20);
constexpr std::chrono::milliseconds kLatest(500);
constexpr unsigned kMisdirected = 421;
constexpr std::string_view kMisdirectedBody = R"({"partitions":)";

std::string_view PathOf(const Call& call) { return call.match.route->pattern; }

bool CanBeForwarded(std::string_view path) {
  return (path.starts_with("/v1/") || path.starts_with("/personalizer/")) && path != "/v1/live" &&
         path != "/v1/session" && path != "/v1/backup";
}

using Clock = std::chrono::steady_clock;

Awaitable<void> Pause(Worker& worker, Clock::duration waited = {}) {
  asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor> timer(
      worker.io().get_executor());
  timer.expires_after(std::clamp<Clock::duration>(waited / 8, kSoonest, kLatest));
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(kUseAwaitable, ignored));
}

// Whether the engine has the event, or slots of it.
bool HasEvent(const engine::Engine& engine, const std::string& event) {
  const auto exact = engine.FindEvents(event, 1);
  if (exact.ok() && !exact.value().empty() && exact.value()[0] == event) return true;
  const auto slots = engine.FindEvents(SlotEventPrefix(event), 1);
  return slots.ok() && !slots.value().empty();
}

// The partitions that a node has looked into for an event: the body of its 421.
void MarkLookedInto(JsonParser& parser, const std::string& body, std::vector<bool>& looked_into) {
  const auto object = parser.ParseObject(body);
  dom::array list;
  if (!object.ok() || object.value().at_key("partitions").get(list) != simdjson::SUCCESS) return;
  for (const dom::element each : list) {
    std::uint64_t partition = 0;
    if (each.get(partition) == simdjson::SUCCESS && partition < looked_into.size()) {
      looked_into[partition] = true;
    }
  }
}

// The user is forgotten, and something of them is still to be erased.
void SetErasing(Reply& reply, const ErasureId& id) {
  reply.Reset();
  reply.status = 202;
  reply.body = fmt::format(R"({{"erasure":"{0}","status":"/v1/erasures/{0}"}})", id.ToText());
}

}  // namespace

// What answers with one engine. Whoever uses it holds it.
struct ClusterService::Served {
  Served(engine::Engine& the_engine, const ClusterServiceOptions& options)
      : engine(the_engine), api(the_engine, options.max_line_bytes, options.api) {}

  engine::Engine& engine;
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

ClusterService::ClusterService(const ClusterDirectory& directory, ClusterServiceOptions options)
    : directory_(directory), options_(std::move(options)), blocking_(kBlocking) {}

ClusterService::~ClusterService() { Stop(); }

void ClusterService::Start(std::size_t workers) {
  workers_ = workers;
  parsers_ = std::vector<JsonParser>(workers);
  peers_.resize(workers);
}

void ClusterService::Stop() {
  stopping_ = true;
  for (const auto& [partition, served] : All()) SetEngine(partition, nullptr);
  blocking_.join();
  peers_.clear();
}

std::shared_ptr<ClusterService::Served> ClusterService::Find(store::Partition partition) const {
  const std::lock_guard lock(mutex_);
  const auto found = engines_.find(partition);
  return found == engines_.end() ? nullptr : found->second;
}

ClusterService::Engines ClusterService::All() const {
  const std::lock_guard lock(mutex_);
  return engines_;
}

void ClusterService::SetEngine(store::Partition partition, engine::Engine* engine) {
  std::shared_ptr<Served> next;
  if (engine != nullptr) {
    next = std::make_shared<Served>(*engine, options_);
    next->api.Start(workers_);
  }
  std::shared_ptr<Served> former;
  {
    const std::lock_guard lock(mutex_);
    former = std::exchange(engines_[partition], std::move(next));
    if (engine == nullptr) engines_.erase(partition);
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

// Strangers are not told where other nodes are.
void ClusterService::SetNotHere(const Call& call, const std::string& owner) const {
  std::string message = "no node serves this now; one will in some seconds";
  if (!owner.empty()) {
    const bool is_open = call.match.route->access == Access::kOpen;
    // Without "http://": messages show no paths of the server, and that looks like one.
    const std::string address = owner.substr(owner.rfind('/') + 1);
    message = is_open ? "ask another node" : fmt::format("ask the node at {}", address);
  }
  SetApiError(
      call.reply,
      {.status = 503, .code = "Unavailable", .message = std::move(message), .retry_after_s = 1});
}

void ClusterService::SetMisdirected(Reply& reply) const {
  reply.Reset();
  reply.status = kMisdirected;
  reply.body = fmt::format("{}[", kMisdirectedBody);
  for (const auto& [partition, served] : All()) {
    reply.body += fmt::format("{}{}", reply.body.back() == '[' ? "" : ",", partition);
  }
  reply.body += "]}";
}

// A loop of one partition needs no look at the request.
Destination ClusterService::DestinationOf(const Call& call) {
  const std::string_view operation = call.match.route->operation;
  if (operation == "metrics" || operation == "ready") return {.kind = Destination::Kind::kNode};
  if (directory_.partitions() == 1) return {.kind = Destination::Kind::kPartition};
  return server::DestinationOf(call, directory_, parsers_[call.worker.index()], options_.dim,
                               options_.api.user_from);
}

Awaitable<void> ClusterService::Handle(Call& call) {
  if (PathOf(call) == "/v1/health/live") {
    call.reply.body = R"({"status":"live"})";
    co_return;
  }
  // Whom it is for is read from the request itself, also if another node has passed it on: anybody
  // can send that header.
  const Destination destination = DestinationOf(call);
  if (destination.kind == Destination::Kind::kNode) {
    co_await Report(call);
    co_return;
  }
  if (destination.kind == Destination::Kind::kHistory) {
    co_await DeliverHistory(call);
  } else {
    co_await Deliver(call, destination);
  }
}

Awaitable<void> ClusterService::Deliver(Call& call, const Destination& destination) {
  const auto start = Clock::now();
  while (true) {
    const Tried tried = co_await Try(call, destination);
    if (tried == Tried::kAnswered) co_return;
    if (!call.head.forwarded.empty()) {
      SetMisdirected(call.reply);
      co_return;
    }
    call.reply.Reset();  // of what another node has answered
    const auto waited = Clock::now() - start;
    if (stopping_ || waited >= kHoldPatience) break;
    co_await Pause(call.worker, waited);
  }
  SetNotHere(call, "");
}

Awaitable<ClusterService::Tried> ClusterService::Try(Call& call, const Destination& destination) {
  if (destination.kind == Destination::Kind::kEvent) {
    const Tried tried = co_await TryEvent(call, destination);
    co_return tried;
  }
  store::Partition partition = destination.partition;
  if (destination.kind == Destination::Kind::kAny) {
    const Engines engines = All();
    if (!engines.empty()) partition = engines.begin()->first;
  }
  if (auto served = Find(partition)) {
    const Tried tried = co_await Answer(call, partition, std::move(served));
    co_return tried;
  }
  std::string url = directory_.OwnerUrl(partition);
  if (url.empty() && destination.kind == Destination::Kind::kAny) {
    const std::vector<std::string> others = directory_.OwnerUrls();
    if (!others.empty()) url = others[0];
  }
  if (url.empty() || !call.head.forwarded.empty()) co_return Tried::kNotNow;
  const Tried tried = co_await Forward(call, destination, url);
  co_return tried;
}

Awaitable<ClusterService::Tried> ClusterService::Answer(Call& call, store::Partition partition,
                                                        std::shared_ptr<Served> served) {
  const std::string_view operation = call.match.route->operation;
  if (operation == "getErasure") {
    co_await TellErasure(call, partition, served->engine);
    co_return Tried::kAnswered;
  }
  co_await served->api.Handle(call);
  if (operation == "forgetUser" && call.reply.status == 204) {
    SetErasing(call.reply,
               {.partition = partition, .sequence = served->engine.Stats().committed_sequence});
  }
  if (call.reply.stream != nullptr) {
    call.reply.stream = std::make_shared<HeldReply>(served, std::move(call.reply.stream));
  }
  if (call.reply.status != 503 || directory_.partitions() == 1) co_return Tried::kAnswered;
  // If its partition is being taken away, whoever gets it can answer.
  served.reset();
  co_await Pause(call.worker);
  const bool still_here = Find(partition) != nullptr;
  if (still_here) co_return Tried::kAnswered;
  call.reply.Reset();
  co_return Tried::kNotNow;
}

Awaitable<ClusterService::Tried> ClusterService::TryEvent(Call& call,
                                                          const Destination& destination) {
  std::vector<bool> looked_into(directory_.partitions());
  for (const auto& [partition, served] : All()) {
    looked_into[partition] = true;
    if (!HasEvent(served->engine, destination.event)) continue;
    auto has_it = served;
    const Tried tried = co_await Answer(call, partition, std::move(has_it));
    co_return tried;
  }
  if (!call.head.forwarded.empty()) co_return Tried::kNotNow;
  const Tried tried = co_await TryOthersForEvent(call, destination, std::move(looked_into));
  co_return tried;
}

Awaitable<ClusterService::Tried> ClusterService::TryOthersForEvent(Call& call,
                                                                   const Destination& destination,
                                                                   std::vector<bool> looked_into) {
  std::vector<std::string> urls = directory_.OwnerUrls();
  if (destination.maker) {
    const auto first = std::ranges::find(urls, directory_.OwnerUrl(*destination.maker));
    if (first != urls.end()) std::rotate(urls.begin(), first, first + 1);
  }
  for (const std::string& url : urls) {
    const Tried tried = co_await Forward(call, destination, url);
    if (tried == Tried::kAnswered) co_return tried;
    MarkLookedInto(parsers_[call.worker.index()], call.reply.body, looked_into);
    call.reply.Reset();
  }
  for (const bool each : looked_into) {
    if (!each) co_return Tried::kNotNow;
  }
  // Nobody has it: any engine says so, and counts it.
  const Engines engines = All();
  if (!engines.empty()) {
    auto served = engines.begin()->second;
    const Tried tried = co_await Answer(call, engines.begin()->first, std::move(served));
    co_return tried;
  }
  SetApiError(
      call.reply,
      {.status = 404, .code = "NotFound", .field = "eventId", .message = "there is no such event"});
  co_return Tried::kAnswered;
}

// kNotNow leaves the body of the other node's answer, if it gave one.
Awaitable<ClusterService::Tried> ClusterService::Forward(Call& call, const Destination& destination,
                                                         const std::string& url) {
  if (!CanBeForwarded(PathOf(call))) {
    SetNotHere(call, url);
    co_return Tried::kAnswered;
  }
  std::string fields = fmt::format("{}: yes\r\n", kForwardedHeader);
  if (!call.head.api_key.empty()) fields += fmt::format("X-API-Key: {}\r\n", call.head.api_key);
  ++forwarded_;
  std::unique_ptr<Peers>& peers = peers_[call.worker.index()];
  if (peers == nullptr) peers = std::make_unique<Peers>(call.worker, blocking_, kForwardTimeout);
  // HEAD is asked as GET: whoever answers the client leaves the body out, and knows its length.
  const PeerRequest request{.method = MethodName(call.match.route->method),
                            .target = call.head.target,
                            .fields = fields,
                            .body = call.body};
  bool sent = false;
  Result<HttpReply> reply = co_await peers->Send(url, request, sent);
  if (!reply.ok()) {
    // Perhaps it has died. What it was asked may have happened.
    if (!sent || destination.repeatable) co_return Tried::kNotNow;
    SetNotHere(call, "");
    co_return Tried::kAnswered;
  }
  call.reply.status = static_cast<int>(reply.value().status);
  call.reply.body = std::move(reply.value().body);
  // Another 421 is that of a node that does not know the name by which it was called.
  const bool misdirected =
      reply.value().status == kMisdirected && call.reply.body.starts_with(kMisdirectedBody);
  co_return misdirected ? Tried::kNotNow : Tried::kAnswered;
}

Awaitable<void> ClusterService::TellErasure(Call& call, store::Partition partition,
                                            engine::Engine& engine) {
  const auto text = DecodeId(call.match.raw_id);
  const auto id = text.ok() ? ErasureId::Parse(text.value()) : std::nullopt;
  if (!id || id->partition != partition || id->sequence == 0 ||
      id->sequence > engine.Stats().committed_sequence) {
    SetApiError(
        call.reply,
        {.status = 404, .code = "NotFound", .field = "id", .message = "there is no such erasure"});
    co_return;
  }
  Pending<Result<ErasureProgress>> pending(call.worker);
  RunOn(blocking_, pending, [&] { return options_.look_at_erasure(*id); });
  co_await pending.Wait();
  const Result<ErasureProgress> progress = pending.Take();
  if (!progress.ok()) {
    SetNotHere(call, "");
    co_return;
  }
  const std::vector<std::string>& waits = progress.value().waits_for;
  call.reply.body = fmt::format(R"({{"erasure":"{}","state":"{}","waitsFor":[)", id->ToText(),
                                waits.empty() ? "erased" : "erasing");
  for (const std::string& each : waits) {
    call.reply.body += fmt::format(R"({}"{}")", call.reply.body.back() == '[' ? "" : ",", each);
  }
  call.reply.body += "]}";
}

Awaitable<void> ClusterService::Report(Call& call) {
  const Engines engines = All();
  engine::EngineStats stats;
  for (const auto& [partition, served] : engines) {
    if (engines.size() == 1) {
      stats = served->engine.Stats();
    } else {
      AddStats(stats, served->engine.Stats());
    }
  }
  if (call.match.route->operation == "ready") {
    call.reply.body = R"({"status":"ready"})";
    if (stats.last_error.empty()) co_return;
    SetApiError(
        call.reply,
        {.status = 503, .code = "NotReady", .message = stats.last_error, .retry_after_s = 5});
    co_return;
  }
  const std::vector<RouteMetrics::Totals> totals = call.server.RouteTotals();
  MetricsFacts facts{.routes = Api::Routes(),
                     .totals = totals,
                     .server = call.server.Facts(),
                     .engine = std::move(stats)};
  if (options_.api.decision_log != nullptr) {
    facts.decision_log = options_.api.decision_log->Stats();
  }
  const ClusterDirectory::Facts directory = directory_.facts();
  facts.cluster = ClusterFacts{.nodes = directory.nodes,
                               .partitions = directory_.partitions(),
                               .served = engines.size(),
                               .unowned = directory.unowned,
                               .unfollowed = directory.unfollowed,
                               .followed = directory.followed_here,
                               .standby_lag = directory.standby_lag,
                               .forwarded = forwarded_};
  if (options_.add_facts) options_.add_facts(*facts.cluster);
  call.reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  call.reply.body = RenderMetrics(facts);
}

// Every partition gets the events of its users. If one fails, those before it have learned theirs:
// whoever sends all of it again repeats nothing.
Awaitable<void> ClusterService::DeliverHistory(Call& call) {
  JsonParser& parser = parsers_[call.worker.index()];
  const auto parts = SplitHistory(parser, call.body, options_.dim, directory_);
  if (!parts.ok()) co_return SetApiError(call.reply, parts.status());
  const std::string_view whole = call.body;
  HistoryOutcome outcome;
  for (const HistoryPart& part : parts.value()) {
    call.body = part.body;
    call.reply.Reset();
    const Destination destination{.kind = Destination::Kind::kPartition,
                                  .partition = part.partition};
    co_await Deliver(call, destination);
    if (call.reply.status != 200) break;
    const Status added = AddHistoryReply(parser, call.reply.body, part, outcome);
    if (!added.ok()) SetApiError(call.reply, Status(StatusCode::kUnavailable, added.message()));
    if (!added.ok()) break;
  }
  call.body = whole;
  if (call.reply.status != 200) co_return;
  std::ranges::sort(outcome.skipped, {}, &HistoryOutcome::Skipped::index);
  call.reply.Reset();
  AppendHistoryReply(call.reply.body, outcome);
}

std::unique_ptr<BodyStream> ClusterService::OpenStream(
    const Call& call, std::optional<std::uint64_t> announced_bytes) {
  const Engines engines = All();
  if (!engines.empty()) {
    auto served = engines.begin()->second;
    auto stream = served->api.OpenStream(call, announced_bytes);
    return std::make_unique<HeldBody>(std::move(served), std::move(stream));
  }
  const std::vector<std::string> others = directory_.OwnerUrls();
  SetNotHere(call, others.empty() ? "" : others[0]);
  return std::make_unique<RefusedBody>();
}

}  // namespace codband::server
