#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

struct pg_conn;
struct pg_result;

namespace codband::cluster {

// A statement that is prepared when it is first used. Both are literals.
struct Statement {
  const char* name;
  const char* sql;
};

// One argument of a statement: text, or bytes for a bytea.
struct Argument {
  std::string bytes = {};
  bool binary = false;

  Argument(std::string text) : bytes(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Argument(const char* text) : bytes(text) {}             // NOLINT(google-explicit-constructor)
  Argument(std::uint64_t number)                          // NOLINT(google-explicit-constructor)
      : bytes(std::to_string(number)) {}
  static Argument Bytes(std::string bytes) {
    Argument argument(std::move(bytes));
    argument.binary = true;
    return argument;
  }
};

// What a statement returned. Values are in PostgreSQL's binary format.
class Rows {
 public:
  Rows() = default;
  explicit Rows(pg_result* result);

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  bool IsNull(std::size_t row, int column) const;
  std::string Bytes(std::size_t row, int column) const;
  std::int64_t Int(std::size_t row, int column) const;  // of a bigint
  std::uint64_t Number(std::size_t row, int column) const {
    return static_cast<std::uint64_t>(Int(row, column));
  }

 private:
  struct Free {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Free> result_;
};

class SessionWatch;

// What has become of a statement, which is a transaction of its own.
struct Reply {
  enum class Fate {
    kCommitted,  // with all that a commit promises
    kRefused,    // rolled back; the connection is as good as before
    kUnknown,    // the connection was lost meanwhile, or the standby may not have it
  };
  Fate fate = Fate::kUnknown;
  Rows rows = {};
  std::string problem = {};  // for people, unless committed
  bool is_damage = false;    // of the database's own bytes, or a statement that it does not know

  bool ok() const { return fate == Fate::kCommitted; }
  // kUnavailable, or kCorruption.
  Status ToStatus() const;
};

// A connection to PostgreSQL, used by one thread at a time. When it is lost it stays lost.
class Connection {
 public:
  struct Options {
    std::string dsn = {};              // a connection string; may name several hosts
    std::string schema = {};           // of the loop: checked by CheckSchemaName
    std::int64_t timeout_ms = 10'000;  // for an answer; then the connection is given up
    // Tells what has become of a session that does not answer; outlives the connection. May be
    // null.
    SessionWatch* watch = nullptr;
    // A session that was given up. While it is not known to be gone this one is not given up.
    std::string given_up = {};
  };

  // `stop`: give up as soon as it is true. kInvalidArgument: the connection string cannot be read.
  // kUnavailable: there is nobody who accepts it, for whatever reason.
  static Result<std::unique_ptr<Connection>> Open(const Options& options,
                                                  const std::atomic<bool>& stop);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool lost() const { return lost_; }
  // The session that the server may still have although nobody listens: this one if no answer came
  // in time, else the one of the options unless that is known to be gone. Empty: none.
  const std::string& given_up() const { return options_.given_up; }

  Reply Run(const Statement& statement, const std::vector<Argument>& arguments);
  // Sends all of them before it waits for the first (pipeline mode); each is a transaction.
  struct Query {
    const Statement* statement = nullptr;
    std::vector<Argument> arguments = {};
  };
  std::vector<Reply> RunAll(std::span<const Query> queries);
  // SQL without arguments, of several statements perhaps, as one transaction.
  Reply RunScript(const std::string& sql);

  // Waits so long for notifications; what they said.
  std::set<std::string> AwaitNotifications(std::int64_t ms);

 private:
  Connection(pg_conn* connection, const Options& options, const std::atomic<bool>& stop);
  static void Notice(void* self, const pg_result* result);
  Status Begin();
  bool Prepare(const Statement& statement, Reply& reply);
  bool Send(const Query& query);
  // The next result, or null at the end of a statement's results.
  pg_result* Next();
  // Waits until the socket can be read, at most until then.
  bool AwaitInput(std::int64_t deadline_ms);
  // Whether there is no point in waiting for an answer that has not come since then.
  bool IsInVain(std::int64_t since_ms);
  Reply Judge(pg_result* result);
  Reply Lose(std::string problem);
  void Skip();

  pg_conn* connection_;
  Options options_;
  const std::atomic<bool>& stop_;
  std::string session_;  // as SessionWatch calls it
  std::set<std::string_view> prepared_;
  bool lost_ = false;
  bool warned_ = false;  // since the last statement began
  std::string warning_;
};

// A schema's name goes into SQL: kInvalidArgument unless it is a plain lower-case word.
Status CheckSchemaName(std::string_view schema);

}  // namespace codband::cluster
