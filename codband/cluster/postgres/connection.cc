#include "codband/cluster/postgres/connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/clock.h"
#include "codband/cluster/postgres/connect.h"
#include "codband/cluster/postgres/session_watch.h"

namespace codband::cluster {
namespace {

constexpr int kBinary = 1;
// While it waits it looks so often whether it should stop.
constexpr std::int64_t kLookMs = 100;
// After so long without an answer it is asked what has become of the session.
constexpr std::int64_t kDoubtMs = 2000;
constexpr std::size_t kLongestName = 40;

// Damage, an undefined table or column, a syntax error: trying again does not help.
bool IsDamage(std::string_view sqlstate) {
  return sqlstate.starts_with("XX") || sqlstate.starts_with("42");
}

}  // namespace

Rows::Rows(pg_result* result) : result_(result) {}
void Rows::Free::operator()(pg_result* result) const { PQclear(result); }

std::size_t Rows::size() const {
  return result_ == nullptr ? 0 : static_cast<std::size_t>(PQntuples(result_.get()));
}

bool Rows::IsNull(std::size_t row, int column) const {
  return PQgetisnull(result_.get(), static_cast<int>(row), column) != 0;
}

std::string Rows::Bytes(std::size_t row, int column) const {
  const int i = static_cast<int>(row);
  return {PQgetvalue(result_.get(), i, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), i, column))};
}

std::int64_t Rows::Int(std::size_t row, int column) const {
  const std::string bytes = Bytes(row, column);
  CODBAND_CHECK(bytes.size() == 8);
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

Status Reply::ToStatus() const {
  if (ok()) return {};
  return {is_damage ? StatusCode::kCorruption : StatusCode::kUnavailable, "PostgreSQL: " + problem};
}

Connection::Connection(pg_conn* connection, const Options& options, const std::atomic<bool>& stop)
    : connection_(connection), options_(options), stop_(stop) {
  PQsetNoticeReceiver(connection_, Notice, this);
}

Connection::~Connection() { PQfinish(connection_); }

// A warning may say that a commit has not reached the standby: "canceling wait for synchronous
// replication". There is no code for that one, so that every warning is taken for it.
void Connection::Notice(void* self, const pg_result* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == nullptr || std::string_view(severity) != "WARNING") return;
  auto& connection = *static_cast<Connection*>(self);
  connection.warned_ = true;
  connection.warning_ = OneLine(PQresultErrorMessage(result));
}

Result<std::unique_ptr<Connection>> Connection::Open(const Options& options,
                                                     const std::atomic<bool>& stop) {
  CODBAND_RETURN_IF_ERROR(CheckSchemaName(options.schema));
  const auto connected = ConnectToPrimary(options.dsn, stop);
  if (!connected.ok()) return connected.status();
  std::unique_ptr<Connection> opened(new Connection(connected.value(), options, stop));
  CODBAND_RETURN_IF_ERROR(opened->Begin());
  return opened;
}

// A commit must wait for the standby's disk, whatever the defaults are. No timeout may end that
// wait: the transaction would be committed all the same.
Status Connection::Begin() {
  const Reply reply = RunScript(fmt::format(
      "SET search_path = {0}; SET client_min_messages = warning; SET statement_timeout = 0; "
      "SET lock_timeout = 0; SET idle_session_timeout = 0; SET timezone = 'UTC'; "
      "SELECT set_config('synchronous_commit', 'on', false) "
      "WHERE current_setting('synchronous_commit') <> 'remote_apply'; "
      "SELECT " CODBAND_SESSION_NAME " FROM pg_stat_activity WHERE pid = pg_backend_pid()",
      options_.schema));
  if (reply.ok() && !reply.rows.empty()) session_ = reply.rows.Bytes(0, 0);
  return reply.ToStatus();
}

Reply Connection::Lose(std::string problem) {
  lost_ = true;
  return {.fate = Reply::Fate::kUnknown, .problem = std::move(problem)};
}

bool Connection::AwaitInput(std::int64_t deadline_ms) {
  while (!stop_) {
    const std::int64_t left = deadline_ms - BootMillis();
    if (left < 0) return false;
    pollfd ready{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(std::min(left, kLookMs))) > 0) return true;
  }
  return false;
}

// A session that waits for a lost standby does not notice that it was given up, and keeps its place
// among PostgreSQL's max_connections: there are never more than two of a connection's owner.
bool Connection::IsInVain(std::int64_t since_ms) {
  const std::int64_t waited_ms = BootMillis() - since_ms;
  if (options_.watch == nullptr) return waited_ms > options_.timeout_ms;
  if (waited_ms < std::min<std::int64_t>(kDoubtMs, options_.timeout_ms)) return false;
  const auto is_gone = [&](const std::string& session) {
    return options_.watch->Find(session, since_ms) == SessionWatch::Found::kGone;
  };
  if (!session_.empty() && is_gone(session_)) return true;
  if (waited_ms < options_.timeout_ms) return false;
  if (!options_.given_up.empty() && !is_gone(options_.given_up)) return false;
  options_.given_up = session_;
  return true;
}

pg_result* Connection::Next() {
  const std::int64_t since_ms = BootMillis();
  while (PQisBusy(connection_) != 0) {
    while (!AwaitInput(BootMillis() + kLookMs)) {
      if (!stop_ && !IsInVain(since_ms)) continue;
      lost_ = true;
      return nullptr;
    }
    if (PQconsumeInput(connection_) == 0) {
      lost_ = true;
      return nullptr;
    }
  }
  return PQgetResult(connection_);
}

Reply Connection::Judge(pg_result* result) {
  if (result == nullptr) return Lose("no answer in time");
  Reply reply{.rows = Rows(result)};
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    reply.fate = Reply::Fate::kCommitted;
    return reply;
  }
  reply.problem = OneLine(PQresultErrorMessage(result));
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  // FATAL may come after the commit, while it waits for the standby.
  const bool error = severity != nullptr && std::string_view(severity) == "ERROR";
  if (!error || PQstatus(connection_) != CONNECTION_OK) return Lose(std::move(reply.problem));
  reply.fate = Reply::Fate::kRefused;
  reply.is_damage = state != nullptr && IsDamage(state);
  // The primary has become a standby: this connection is of no use any more.
  if (state != nullptr && std::string_view(state) == "25006") lost_ = true;
  return reply;
}

Reply Connection::RunScript(const std::string& sql) {
  if (lost_) return Lose("the connection is lost");
  warned_ = false;
  if (PQsendQuery(connection_, sql.c_str()) == 0) return Lose(OneLine(PQerrorMessage(connection_)));
  Reply last{.fate = Reply::Fate::kCommitted};
  while (pg_result* result = Next()) {
    Reply reply = Judge(result);
    if (last.ok()) last = std::move(reply);
  }
  if (lost_ && last.ok()) return Lose("no answer in time");
  return last;
}

bool Connection::Prepare(const Statement& statement, Reply& reply) {
  if (prepared_.contains(statement.name)) return true;
  if (PQsendPrepare(connection_, statement.name, statement.sql, 0, nullptr) == 0) {
    reply = Lose(OneLine(PQerrorMessage(connection_)));
    return false;
  }
  reply = Judge(Next());
  Skip();
  if (!reply.ok()) {
    // Nothing has happened yet.
    reply.fate = Reply::Fate::kRefused;
    return false;
  }
  prepared_.insert(statement.name);
  return true;
}

void Connection::Skip() {
  while (!lost_) {
    pg_result* result = Next();
    if (result == nullptr) return;
    PQclear(result);
  }
}

bool Connection::Send(const Query& query) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (const Argument& argument : query.arguments) {
    values.push_back(argument.bytes.c_str());
    lengths.push_back(static_cast<int>(argument.bytes.size()));
    formats.push_back(argument.binary ? kBinary : 0);
  }
  return PQsendQueryPrepared(connection_, query.statement->name, static_cast<int>(values.size()),
                             values.data(), lengths.data(), formats.data(), kBinary) != 0;
}

Reply Connection::Run(const Statement& statement, const std::vector<Argument>& arguments) {
  Reply reply;
  if (lost_) {
    reply.fate = Reply::Fate::kRefused;
    reply.problem = "the connection is lost";
    return reply;
  }
  if (!Prepare(statement, reply)) return reply;
  warned_ = false;
  if (!Send({.statement = &statement, .arguments = arguments})) {
    return Lose(OneLine(PQerrorMessage(connection_)));
  }
  reply = Judge(Next());
  Skip();
  if (reply.ok() && (warned_ || lost_)) {
    return Lose(warned_ ? warning_ : "the connection was lost at the end");
  }
  return reply;
}

std::vector<Reply> Connection::RunAll(std::span<const Query> queries) {
  std::vector<Reply> replies(queries.size());
  if (queries.size() == 1) {
    replies[0] = Run(*queries[0].statement, queries[0].arguments);
    return replies;
  }
  for (Reply& reply : replies) {
    reply.fate = Reply::Fate::kRefused;
    reply.problem = "the connection is lost";
  }
  for (const Query& query : queries) {
    Reply prepared{.problem = "the connection is lost"};
    if (!lost_ && Prepare(*query.statement, prepared)) continue;
    for (Reply& reply : replies) reply.problem = prepared.problem;
    return replies;
  }
  warned_ = false;
  PQenterPipelineMode(connection_);
  std::size_t sent = 0;
  for (; sent < queries.size() && !lost_; ++sent) {
    replies[sent].fate = Reply::Fate::kUnknown;
    if (!Send(queries[sent]) || PQpipelineSync(connection_) == 0) {
      replies[sent] = Lose(OneLine(PQerrorMessage(connection_)));
    }
  }
  for (std::size_t i = 0; i < sent && !lost_; ++i) {
    replies[i] = Judge(Next());
    Skip();                       // the end of the statement
    if (!lost_) PQclear(Next());  // the end of its transaction
    if (replies[i].ok() && (warned_ || lost_)) {
      replies[i] = Lose(warned_ ? warning_ : "the connection was lost at the end");
    }
  }
  if (!lost_ && PQexitPipelineMode(connection_) == 0) lost_ = true;
  return replies;
}

std::set<std::string> Connection::AwaitNotifications(std::int64_t ms) {
  std::set<std::string> came;
  if (lost_) return came;
  if (AwaitInput(BootMillis() + ms) && PQconsumeInput(connection_) == 0) lost_ = true;
  while (PGnotify* notification = PQnotifies(connection_)) {
    came.insert(notification->extra);
    PQfreemem(notification);
  }
  if (PQstatus(connection_) != CONNECTION_OK) lost_ = true;
  return came;
}

Status CheckSchemaName(std::string_view schema) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool fits = !schema.empty() && schema.size() <= kLongestName &&
                    std::ranges::all_of(schema, plain) && !(schema[0] >= '0' && schema[0] <= '9');
  if (fits && !schema.starts_with("pg_")) return {};
  return Status::InvalidArgument(
      fmt::format("cluster: the loop is called '{}', expected lower-case letters, digits and '_', "
                  "a letter first, {} at most",
                  schema, kLongestName));
}

}  // namespace codband::cluster
