#include "codband/cluster/postgres/connect.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "codband/base/clock.h"
#include "codband/base/parse.h"

namespace codband::cluster {
namespace {

constexpr int kPollMs = 100;            // whether it should stop
constexpr std::int64_t kAgainMs = 500;  // a host that has refused is asked again
constexpr double kForever = 1e9;        // as libpq understands a connect_timeout of 0

struct Finish {
  void operator()(pg_conn* connection) const { PQfinish(connection); }
};
using Owned = std::unique_ptr<pg_conn, Finish>;

// A connection string, taken apart. Of a keyword that is there twice the last value counts.
using Keywords = std::vector<std::pair<std::string, std::string>>;

// What the connection string says comes later and wins. Of several hosts the one that can be
// written is meant: after a failover that is another one. A host that is gone without a word is
// noticed after about 11 s, whether anything is under way or not.
const Keywords kDefaults{
    {"application_name", "codband"},       {"connect_timeout", "5"},  {"keepalives_idle", "5"},
    {"keepalives_interval", "2"},          {"keepalives_count", "3"}, {"tcp_user_timeout", "10000"},
    {"target_session_attrs", "read-write"}};

// What libpq quotes of a connection string that it cannot read may be, or hold, the password.
std::string WithoutQuotes(std::string_view message, std::string_view dsn) {
  if (dsn.find("password") == dsn.npos && dsn.find('@') == dsn.npos) return std::string(message);
  const std::size_t first = message.find('"');
  const std::size_t last = message.rfind('"');
  if (first == last) return std::string(message);
  return fmt::format("{}…{} (what is quoted is left out: there may be a password in it)",
                     message.substr(0, first + 1), message.substr(last));
}

Result<Keywords> Parse(const std::string& dsn) {
  char* problem = nullptr;
  PQconninfoOption* const parsed = PQconninfoParse(dsn.c_str(), &problem);
  if (parsed == nullptr) {
    const std::string message =
        problem == nullptr ? "out of memory" : WithoutQuotes(OneLine(problem), dsn);
    PQfreemem(problem);
    return Status::InvalidArgument(
        fmt::format("cluster: the connection string cannot be read: {}; expected something like "
                    "'host=db1,db2 dbname=codband' or 'postgresql://db1,db2/codband'",
                    message));
  }
  Keywords keywords = kDefaults;
  for (const PQconninfoOption* each = parsed; each->keyword != nullptr; ++each) {
    if (each->val != nullptr) keywords.emplace_back(each->keyword, each->val);
  }
  PQconninfoFree(parsed);
  return keywords;
}

std::string ValueOf(const Keywords& keywords, std::string_view keyword) {
  std::string value;
  for (const auto& [name, text] : keywords) {
    if (name == keyword) value = text;
  }
  return value;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// One for each host; as it is, if libpq would not understand the lists either.
std::vector<Keywords> PerHost(const Keywords& keywords) {
  std::size_t hosts = 1;
  for (const std::string_view list : {"host", "hostaddr"}) {
    hosts = std::max(hosts, SplitAtCommas(ValueOf(keywords, list)).size());
  }
  std::vector<Keywords> each(hosts, keywords);
  for (const std::string_view list : {"host", "hostaddr", "port"}) {
    const std::string value = ValueOf(keywords, list);
    if (value.empty()) continue;
    const std::vector<std::string> parts = SplitAtCommas(value);
    const bool for_all = parts.size() == 1 && list == "port";
    if (parts.size() != hosts && !for_all) return {keywords};
    for (std::size_t i = 0; i < hosts; ++i) {
      std::erase_if(each[i], [&](const auto& keyword) { return keyword.first == list; });
      each[i].emplace_back(list, parts[for_all ? 0 : i]);
    }
  }
  return each;
}

struct Parameters {
  explicit Parameters(const Keywords& keywords) {
    for (const auto& [name, value] : keywords) {
      names.push_back(name.c_str());
      values.push_back(value.c_str());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
  }
  std::vector<const char*> names;
  std::vector<const char*> values;
};

// One host's.
struct Attempt {
  Keywords host;
  Owned connection = nullptr;
  PostgresPollingStatusType next = PGRES_POLLING_FAILED;
  std::int64_t again_ms = 0;  // when it failed: not before
  std::string problem = {};   // of the last time that it failed

  void Start() {
    const Parameters parameters(host);
    connection = Owned(PQconnectStartParams(parameters.names.data(), parameters.values.data(), 0));
    const bool failed = PQstatus(connection.get()) == CONNECTION_BAD;
    Note(failed ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING);
  }
  void Continue() { Note(PQconnectPoll(connection.get())); }

 private:
  void Note(PostgresPollingStatusType status) {
    next = status;
    if (status != PGRES_POLLING_FAILED) return;
    again_ms = BootMillis() + kAgainMs;
    problem = OneLine(PQerrorMessage(connection.get()));
  }
};

// Connects to several hosts at once. While one is silent those that refuse are asked again: a
// standby may be promoted meanwhile.
class Race {
 public:
  explicit Race(const std::vector<Keywords>& hosts) {
    for (const Keywords& host : hosts) {
      attempts_.push_back({.host = host});
      attempts_.back().Start();
    }
  }

  // The first that is connected, or null when none will be.
  Owned Await(std::int64_t deadline_ms, const std::atomic<bool>& stop) {
    while (!stop && BootMillis() < deadline_ms) {
      std::vector<pollfd> sockets;
      std::vector<Attempt*> waiting;
      for (Attempt& attempt : attempts_) {
        if (attempt.next == PGRES_POLLING_OK) return std::move(attempt.connection);
        if (attempt.next == PGRES_POLLING_FAILED) continue;
        const bool reads = attempt.next == PGRES_POLLING_READING;
        sockets.push_back({.fd = PQsocket(attempt.connection.get()),
                           .events = static_cast<short>(reads ? POLLIN : POLLOUT),
                           .revents = 0});
        waiting.push_back(&attempt);
      }
      if (waiting.empty()) return nullptr;
      ::poll(sockets.data(), sockets.size(), kPollMs);
      for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (sockets[i].revents != 0) waiting[i]->Continue();
      }
      for (Attempt& attempt : attempts_) {
        const bool failed = attempt.next == PGRES_POLLING_FAILED;
        if (failed && BootMillis() >= attempt.again_ms) attempt.Start();
      }
    }
    return nullptr;
  }

  std::string Problems() const {
    std::string all;
    for (const Attempt& attempt : attempts_) {
      all += fmt::format("{}{}", all.empty() ? "" : "; ",
                         attempt.problem.empty() ? fmt::format("no answer from '{}' in time",
                                                               ValueOf(attempt.host, "host"))
                                                 : attempt.problem);
    }
    return all;
  }

 private:
  std::vector<Attempt> attempts_;
};

// A host name may have several addresses, which libpq tries one after the other, each as long.
Owned ConnectToOne(const Keywords& keywords) {
  const Parameters parameters(keywords);
  return Owned(PQconnectdbParams(parameters.names.data(), parameters.values.data(), 0));
}

Status NobodyAccepts(const std::string& problem, const std::string& dsn) {
  // A password with "/" or "@" in it is taken for something else.
  const bool misread = problem.starts_with("invalid ") || std::ranges::count(dsn, '@') > 1;
  return {StatusCode::kUnavailable, fmt::format("cluster: cannot connect to PostgreSQL: {}",
                                                misread ? WithoutQuotes(problem, dsn) : problem)};
}

}  // namespace

std::string OneLine(std::string_view message) {
  std::string line(message);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

Result<pg_conn*> ConnectToPrimary(const std::string& dsn, const std::atomic<bool>& stop) {
  const auto keywords = Parse(dsn);
  if (!keywords.ok()) return keywords.status();
  const std::vector<Keywords> hosts = PerHost(keywords.value());
  if (hosts.size() == 1) {
    Owned connection = ConnectToOne(hosts[0]);
    if (PQstatus(connection.get()) == CONNECTION_OK) return connection.release();
    return NobodyAccepts(
        connection == nullptr ? "out of memory" : OneLine(PQerrorMessage(connection.get())), dsn);
  }
  const auto given = ParseNumber<double>(ValueOf(keywords.value(), "connect_timeout"));
  const double seconds = given.value_or(0) > 0 ? *given : kForever;
  Race race(hosts);
  Owned connection = race.Await(BootMillis() + static_cast<std::int64_t>(1000 * seconds), stop);
  if (connection != nullptr) return connection.release();
  return NobodyAccepts(stop ? "it is being closed" : race.Problems(), dsn);
}

}  // namespace codband::cluster
