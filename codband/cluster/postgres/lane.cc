#include "codband/cluster/postgres/lane.h"

#include <fmt/format.h>

#include <chrono>

#include "codband/base/clock.h"

namespace codband::cluster {
namespace {

constexpr double kSecondsBetweenTries = 0.2;
constexpr std::chrono::milliseconds kResolvePause(50);

// The two halves of an append are one statement: the frame is inserted only if the partition has
// moved on to its sequence, which needs the epoch and the session.
constexpr Statement kAppend{
    "append",
    "WITH moved AS (UPDATE partitions SET last_sequence = $4::bigint WHERE p = $1::integer "
    "AND epoch = $2::bigint AND session = $3::bigint AND last_sequence = $4::bigint - 1 "
    "RETURNING p) "
    "INSERT INTO log (p, sequence, epoch, frame) "
    "SELECT p, $4::bigint, $2::bigint, $5::bytea FROM moved RETURNING sequence"};
constexpr Statement kWhyNot{"why_not",
                            "SELECT epoch, session, last_sequence FROM partitions "
                            "WHERE p = $1::integer"};
// Waits for an append that is under way, keeps out those that come later; and as it writes, its
// commit proves that what it has seen is on the standby.
constexpr Statement kNewSession{
    "new_session",
    "UPDATE partitions SET session = session + 1 WHERE p = $1::integer AND epoch = $2::bigint "
    "RETURNING session, last_sequence"};
constexpr Statement kNextEpoch{
    "next_epoch",
    "UPDATE takeovers SET questions = questions + 1 WHERE p = $1::integer AND epoch = "
    "(SELECT min(epoch) FROM takeovers WHERE p = $1::integer AND epoch > $2::bigint) "
    "RETURNING after_sequence"};

Status Stopping() { return {StatusCode::kUnavailable, "PostgreSQL: the log is being closed"}; }

}  // namespace

Result<Connection*> LastingConnection::Get() {
  if (connection_ != nullptr && !connection_->lost()) return connection_.get();
  if (stop_) return Stopping();
  if (!failure_.ok() && WallSeconds() < next_try_seconds_) return failure_;
  if (connection_ != nullptr) options_.given_up = connection_->given_up();
  connection_.reset();
  auto opened = Connection::Open(options_, stop_);
  const bool was_broken = !failure_.ok();
  if (opened.ok()) {
    connection_ = std::move(opened).value();
    failure_ = {};
    if (was_broken && log_) {
      log_({.level = LogLevel::kInfo, .cause = "cluster", .message = "PostgreSQL answers again"});
    }
    return connection_.get();
  }
  failure_ = opened.status();
  next_try_seconds_ = WallSeconds() + kSecondsBetweenTries;
  if (!was_broken && log_) {
    log_(
        {.level = LogLevel::kError,
         .cause = "cluster",
         .message = fmt::format("{}; changes wait or are refused, nothing that was acknowledged is "
                                "lost; it is tried again",
                                failure_.message())});
  }
  return failure_;
}

Lane::Lane(const Connection::Options& options, LogSink log)
    : connection_(options, stop_, std::move(log)), thread_([this] { Run(); }) {}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Lane::Submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Lane::Run() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job(stop_ ? Result<Connection*>(Stopping()) : connection_.Get());
  }
}

AppendLane::AppendLane(const Connection::Options& options, LogSink log)
    : connection_(options, stop_, std::move(log)), thread_([this] { Run(); }) {}

AppendLane::~AppendLane() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AppendLane::Submit(Append append) {
  {
    const std::lock_guard lock(mutex_);
    appends_.push_back(std::move(append));
  }
  wake_.notify_one();
}

void AppendLane::Run() {
  while (true) {
    std::vector<Append> appends;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !appends_.empty(); });
      if (appends_.empty()) return;
      appends.swap(appends_);
    }
    AppendAll(std::move(appends));
  }
}

std::uint64_t& AppendLane::SessionOf(const store::Claim& claim) {
  auto& [epoch, session] = sessions_[claim.partition];
  if (epoch != claim.epoch) {
    epoch = claim.epoch;
    session = 0;
  }
  return session;
}

void AppendLane::AppendAll(std::vector<Append> appends) {
  const auto connection = stop_ ? Result<Connection*>(Stopping()) : connection_.Get();
  if (!connection.ok()) {
    for (const Append& append : appends) append.done(connection.status());
    return;
  }
  std::vector<Connection::Query> queries;
  for (Append& append : appends) {
    const store::Claim& claim = append.claim;
    queries.push_back({.statement = &kAppend,
                       .arguments = {std::uint64_t{claim.partition}, claim.epoch, SessionOf(claim),
                                     append.sequence, Argument::Bytes(std::move(append.frame))}});
  }
  std::vector<Reply> replies = connection.value()->RunAll(queries);
  for (std::size_t i = 0; i < appends.size(); ++i) {
    const Append& append = appends[i];
    if (replies[i].ok() && !replies[i].rows.empty()) {
      append.done(Status());
    } else if (replies[i].fate == Reply::Fate::kRefused) {
      append.done(replies[i].ToStatus());
    } else if (replies[i].ok()) {
      append.done(Refusal(*connection.value(), append.claim, append.sequence));
    } else {
      append.done(Resolve(append.claim, append.sequence));
    }
  }
}

// It was not appended; the question is only why.
Status AppendLane::Refusal(Connection& connection, const store::Claim& claim,
                           std::uint64_t sequence) {
  const Reply reply = connection.Run(kWhyNot, {std::uint64_t{claim.partition}});
  if (!reply.ok()) return {StatusCode::kUnavailable, "PostgreSQL: " + reply.problem};
  if (reply.rows.empty()) {
    return Status::InvalidArgument(fmt::format("there is no partition {}", claim.partition));
  }
  if (reply.rows.Number(0, 0) != claim.epoch) return store::Fenced(claim);
  if (reply.rows.Number(0, 1) != SessionOf(claim)) {
    // A question that was given up has been answered after all.
    SessionOf(claim) = reply.rows.Number(0, 1);
    return {StatusCode::kUnavailable, "PostgreSQL: the connection was made anew"};
  }
  return Status::InvalidArgument(
      fmt::format("sequence: is {}, expected {}", sequence, reply.rows.Number(0, 2) + 1));
}

Status AppendLane::Resolve(const store::Claim& claim, std::uint64_t sequence) {
  for (; !stop_; std::this_thread::sleep_for(kResolvePause)) {
    const auto connection = connection_.Get();
    if (!connection.ok()) continue;
    const std::vector<Argument> arguments{std::uint64_t{claim.partition}, claim.epoch};
    const Reply mine = connection.value()->Run(kNewSession, arguments);
    if (!mine.ok()) continue;
    if (!mine.rows.empty()) {
      SessionOf(claim) = mine.rows.Number(0, 0);
      if (mine.rows.Number(0, 1) >= sequence) return {};
      return {StatusCode::kUnavailable, "PostgreSQL: the connection was lost before the commit"};
    }
    // Fenced: the next owner wrote down how long the log was.
    const Reply next = connection.value()->Run(kNextEpoch, arguments);
    if (!next.ok()) continue;
    const bool there = !next.rows.empty() && next.rows.Number(0, 0) >= sequence;
    return there ? Status() : store::Fenced(claim);
  }
  return Status::IoError("PostgreSQL: the log was closed before the outcome was known");
}

}  // namespace codband::cluster
