#include "codband/cluster/postgres/connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/clock.h"

namespace codband::cluster {
namespace {

constexpr int kBinary = 1;
constexpr std::int64_t kPatientMs = 120'000;  // Options::patience
// While it waits it looks so often whether it should stop.
constexpr std::int64_t kLookMs = 100;
constexpr std::size_t kLongestName = 40;

std::int64_t NowMs() { return static_cast<std::int64_t>(1000 * WallSeconds()); }

// libpq's messages end with a line break and may have several lines.
std::string OneLine(std::string_view message) {
  std::string line(message);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// What libpq quotes of a connection string that it cannot read may be, or hold, the password.
std::string WithoutQuotes(std::string_view message, std::string_view dsn) {
  if (dsn.find("password") == dsn.npos && dsn.find('@') == dsn.npos) return std::string(message);
  const std::size_t first = message.find('"');
  const std::size_t last = message.rfind('"');
  if (first == last) return std::string(message);
  return fmt::format("{}…{} (what is quoted is left out: there may be a password in it)",
                     message.substr(0, first + 1), message.substr(last));
}

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
    : connection_(connection),
      options_(options),
      stop_(stop),
      patient_until_ms_(NowMs() + kPatientMs) {
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
  char* problem = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(options.dsn.c_str(), &problem);
  if (parsed == nullptr) {
    const std::string message =
        problem == nullptr ? "out of memory" : WithoutQuotes(OneLine(problem), options.dsn);
    PQfreemem(problem);
    return Status::InvalidArgument(
        fmt::format("cluster: the connection string cannot be read: {}; expected something like "
                    "'host=db1,db2 dbname=codband' or 'postgresql://db1,db2/codband'",
                    message));
  }
  PQconninfoFree(parsed);
  // What the connection string says comes later and wins. Of several hosts the one that can be
  // written is meant: after a failover that is another one.
  const std::array<const char*, 7> names{"application_name",
                                         "connect_timeout",
                                         "keepalives_idle",
                                         "tcp_user_timeout",
                                         "target_session_attrs",
                                         "dbname",
                                         nullptr};
  const std::array<const char*, 7> values{"codband",           "5",    "5", "10000", "read-write",
                                          options.dsn.c_str(), nullptr};
  pg_conn* connection = PQconnectdbParams(names.data(), values.data(), 1);
  if (connection == nullptr || PQstatus(connection) != CONNECTION_OK) {
    std::string message =
        connection == nullptr ? "out of memory" : OneLine(PQerrorMessage(connection));
    PQfinish(connection);
    // A password with "/" or "@" in it is taken for something else.
    if (message.starts_with("invalid ") || std::ranges::count(options.dsn, '@') > 1) {
      message = WithoutQuotes(message, options.dsn);
    }
    return Status(StatusCode::kUnavailable,
                  fmt::format("cluster: cannot connect to PostgreSQL: {}", message));
  }
  std::unique_ptr<Connection> opened(new Connection(connection, options, stop));
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
      "WHERE current_setting('synchronous_commit') <> 'remote_apply'",
      options_.schema));
  return reply.ToStatus();
}

Reply Connection::Lose(std::string problem) {
  lost_ = true;
  return {.fate = Reply::Fate::kUnknown, .problem = std::move(problem)};
}

bool Connection::is_young() const { return NowMs() < patient_until_ms_; }

bool Connection::AwaitInput(std::int64_t deadline_ms) {
  while (!stop_) {
    const std::int64_t left = deadline_ms - NowMs();
    if (left < 0) return false;
    pollfd ready{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(std::min(left, kLookMs))) > 0) return true;
  }
  return false;
}

pg_result* Connection::Next() {
  const std::int64_t deadline =
      NowMs() + (is_young() ? options_.patience : 1) * options_.timeout_ms;
  while (PQisBusy(connection_) != 0) {
    const bool came = AwaitInput(deadline);
    if (!came || PQconsumeInput(connection_) == 0) {
      timed_out_ = !came;
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
  if (AwaitInput(NowMs() + ms) && PQconsumeInput(connection_) == 0) lost_ = true;
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
