#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/eval/logged_decisions.h"
#include "codband/eval/target.h"

namespace codband::eval {

// Which unusable lines are left out and counted. Any other unusable line fails the whole read.
enum class BadLines {
  kFail,     // no line is left out
  kForeign,  // lines that are no decision: truncated, of another kind, a duplicate
  kAny,      // decisions with invalid values as well, which biases the estimates
};

// What may be read of a log that somebody else has made.
struct LogLimits {
  std::size_t line_bytes = std::numeric_limits<std::size_t>::max();    // of a line of DSJSON
  std::size_t memory_bytes = std::numeric_limits<std::size_t>::max();  // for all decisions
  std::function<void()> between = {};  // called again and again; ends the reading if it throws
};

struct LogSource {
  std::vector<std::string> files;  // a directory stands for its decisions-*.json, sorted by name
  BadLines leave_out = BadLines::kForeign;
  LogLimits limits = {};
};

struct LogSummary {
  std::size_t files = 0;
  std::size_t lines = 0;           // blank ones are not counted
  std::size_t skipped = 0;         // of them, left out
  std::size_t duplicates = 0;      // of the skipped: event ids seen before
  std::string first_problem = {};  // "decisions.json:17: reward = nan, expected …"
  bool timed = true;               // every decision has a time
  std::string features = {};       // number and origin of the features, for people
};

// What a reader returns: the decisions, and how the files were read.
struct LoggedData {
  LoggedDecisions log;
  LogSummary summary;
};

struct DsJsonOptions {
  std::string user_field = "User.id";           // path in "c"
  std::optional<std::size_t> dim = {};          // names are hashed into as many; none: see below
  std::optional<std::size_t> action_base = {};  // `a` counts from 0 or 1; none: told by the line
};

// Lines of DSJSON as `codband serve` and Vowpal Wabbit's services write them: `a` and `p` (actions
// and their probabilities, in parallel), `_label_cost` (minus the reward), `_label_probability`,
// `_label_Action` (from 1) or `_labelIndex` (from 0), `Timestamp`, `EventId` or `event_id`,
// `c._multi` (the candidates). Actions are known by their _tag, else by their place. Features that
// are all named f0, f1, … in the namespace Features are read as columns; of any others every name
// is a column, and so is every name of the shared namespaces beside _multi, but the user, and every
// crossing of the two, the most frequent first (LogColumns); an action without features has its tag
// as its feature. Messages name file, line, field, value and what was expected.
Result<LoggedData> ReadDsJsonLog(const LogSource& source, const DsJsonOptions& options);

// Names of columns; empty: the default, if there is such a column.
struct CsvLogOptions {
  std::string action = "action";
  std::string reward = "reward";
  std::string propensity = "propensity";
  std::string user = {};           // comma-separated: their combination; default "user"
  std::string time = {};           // default "time"
  std::string group = {};          // for MakeTableTarget
  std::string context = {};        // comma-separated: features of the event
  std::string action_prefix = {};  // columns PREFIX + action: one feature of each action
  std::string items_file = {};     // features of the actions
  std::string items_column = {};   // its column with the action; default: as `action`
};

// Rows of a CSV with a header. Every action is a candidate at every row: those of the items file in
// its order or, without one, those that occur, in ascending order. Features of an action are, in
// this order: its columns of the items file (numbers as they are, other columns one-hot; columns
// without a name are ignored), its column PREFIX + action, and the context columns in a block of
// the action's own (Li et al. 2010, disjoint models). Without any of these: one-hot by action.
Result<LoggedData> ReadCsvLog(const LogSource& source, const CsvLogOptions& options);

// A CSV with the columns action and probability (any weight ≥ 0), and optionally group.
Result<ChanceTable> ReadChances(const std::string& file);

// For the readers -------------------------------------------------------------------------------

// Counts lines, and keeps the first problem.
class LineCounter {
 public:
  explicit LineCounter(const LogSource& source) : leave_out_(source.leave_out) {}

  void Line() { ++summary_.lines; }
  // Counts a line that is left out, or fails if it must not be. `foreign`: it is no decision.
  Status Skip(const std::string& file, std::size_t line, std::string_view problem, bool foreign);
  // kInvalidArgument if no line was usable.
  Result<LogSummary> Finish(const LogSource& source, std::size_t events);

 private:
  BadLines leave_out_;
  LogSummary summary_;
};

// The files, directories replaced by their decisions-*.json. kNotFound names what is missing.
Result<std::vector<std::string>> FindFiles(const LogSource& source);

}  // namespace codband::eval
