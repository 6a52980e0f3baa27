// Decisions in CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "codband/base/csv.h"
#include "codband/base/parse.h"
#include "codband/base/text.h"
#include "codband/base/time.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {
namespace {

std::optional<double> FiniteNumber(std::string_view text) {
  const auto value = ParseNumber<double>(text);
  if (!value || !(std::abs(*value) <= kLargestNumber)) return std::nullopt;
  return value;
}

std::string WrongText(std::string_view field, std::string_view value, std::string_view expected) {
  return fmt::format("{} = '{:.40}', expected {}", field, value, expected);
}

Status WrongAt(const CsvRows& rows, std::string_view problem) {
  return Status::InvalidArgument(fmt::format("{}:{}: {}", rows.path(), rows.line(), problem));
}

// The actions, in their order, with their features of the items file.
struct Catalogue {
  std::vector<std::string> actions;
  std::map<std::string, std::uint32_t, std::less<>> places;
  std::size_t dim = 0;
  std::vector<double> features;  // actions × dim
};

// One column as features: itself if all cells are numbers, else one-hot.
void AddColumn(const std::vector<std::string>& cells, std::vector<std::vector<double>>& columns) {
  const bool numbers = std::ranges::all_of(
      cells, [](const std::string& cell) { return FiniteNumber(cell).has_value(); });
  std::vector<std::string> values;
  for (const std::string& cell : cells) {
    if (std::ranges::count(values, cell) == 0) values.push_back(cell);
  }
  const std::size_t first = columns.size();
  columns.resize(first + (numbers ? 1 : values.size()), std::vector<double>(cells.size()));
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (numbers) {
      columns[first][row] = *FiniteNumber(cells[row]);
    } else {
      const auto place = std::ranges::find(values, cells[row]) - values.begin();
      columns[first + static_cast<std::size_t>(place)][row] = 1;
    }
  }
}

Result<Catalogue> ReadItems(const CsvLogOptions& options) {
  auto rows = CsvRows::Open(options.items_file);
  if (!rows.ok()) return rows.status();
  const std::string name = options.items_column.empty() ? options.action : options.items_column;
  const auto id = rows.value().Column("--item-column", name);
  if (!id.ok()) return id.status();
  const std::size_t width = rows.value().header().size();
  std::vector<std::vector<std::string>> cells(width);
  Catalogue catalogue;
  while (rows.value().Next()) {
    if (!rows.value().problem().empty()) return WrongAt(rows.value(), rows.value().problem());
    const std::string_view action = rows.value().field(id.value());
    if (!catalogue.places.emplace(action, catalogue.actions.size()).second) {
      return WrongAt(rows.value(), WrongText(name, action, "each action once"));
    }
    catalogue.actions.emplace_back(action);
    for (std::size_t c = 0; c < width; ++c) cells[c].emplace_back(rows.value().field(c));
  }
  if (catalogue.actions.empty()) {
    return Status::InvalidArgument(
        fmt::format("{} has no rows, expected one for each action", options.items_file));
  }
  std::vector<std::vector<double>> columns;
  for (std::size_t c = 0; c < width; ++c) {
    if (c != id.value() && !rows.value().header()[c].empty()) AddColumn(cells[c], columns);
  }
  catalogue.dim = columns.size();
  for (std::size_t a = 0; a < catalogue.actions.size(); ++a) {
    for (const std::vector<double>& column : columns) catalogue.features.push_back(column[a]);
  }
  return catalogue;
}

// The actions that occur, sorted as numbers if all are, else as text.
Result<Catalogue> CollectActions(const std::vector<std::string>& files,
                                 const CsvLogOptions& options) {
  std::set<std::string> found;
  for (const std::string& file : files) {
    auto rows = CsvRows::Open(file);
    if (!rows.ok()) return rows.status();
    const auto column = rows.value().Column("--action-column", options.action);
    if (!column.ok()) return column.status();
    while (rows.value().Next()) {
      if (rows.value().problem().empty()) found.emplace(rows.value().field(column.value()));
    }
  }
  Catalogue catalogue;
  catalogue.actions.assign(found.begin(), found.end());
  const auto number = [](const std::string& text) { return FiniteNumber(text); };
  if (std::ranges::all_of(catalogue.actions,
                          [&](const auto& text) { return number(text).has_value(); })) {
    std::ranges::stable_sort(catalogue.actions, {},
                             [&](const auto& text) { return *number(text); });
  }
  for (const std::string& action : catalogue.actions) {
    catalogue.places.emplace(action, catalogue.places.size());
  }
  return catalogue;
}

// Where the columns of one file are.
struct Columns {
  std::size_t action = 0, reward = 0, propensity = 0;
  std::vector<std::size_t> user, context, per_action;
  std::optional<std::size_t> time, group;
};

Result<Columns> FindColumns(const CsvRows& rows, const CsvLogOptions& options,
                            const Catalogue& catalogue) {
  Columns columns;
  Status status;
  const auto find = [&](std::string_view flag, std::string_view name) {
    const auto found = rows.Column(flag, name);
    if (!found.ok() && status.ok()) status = found.status();
    return found.ok() ? found.value() : 0;
  };
  const auto find_all = [&](std::string_view flag, const std::string& list) {
    std::vector<std::size_t> found;
    for (const std::string_view name : SplitList(list)) found.push_back(find(flag, name));
    return found;
  };
  columns.action = find("--action-column", options.action);
  columns.reward = find("--reward-column", options.reward);
  columns.propensity = find("--propensity-column", options.propensity);
  columns.user = find_all("--user-column", options.user);
  columns.context = find_all("--context-columns", options.context);
  if (options.user.empty() && rows.Find("user")) columns.user = {*rows.Find("user")};
  columns.time = options.time.empty() ? rows.Find("time") : find("--time-column", options.time);
  if (!options.group.empty()) columns.group = find("--group-column", options.group);
  if (!options.action_prefix.empty()) {
    for (const std::string& action : catalogue.actions) {
      columns.per_action.push_back(find("--action-features", options.action_prefix + action));
    }
  }
  if (!status.ok()) return status;
  return columns;
}

// Turns rows into decisions.
class RowReader {
 public:
  RowReader(const Catalogue& catalogue, const CsvLogOptions& options)
      : catalogue_(catalogue),
        per_action_(options.action_prefix.empty() ? 0 : 1),
        context_(SplitList(options.context).size()),
        // One-hot by action if there are no other features.
        identity_(catalogue.dim + per_action_ + context_ == 0) {
    actions_.resize(catalogue.actions.size());
    std::iota(actions_.begin(), actions_.end(), 0);
    features_.resize(actions_.size() * dim());
  }

  std::size_t dim() const {
    const std::size_t count = catalogue_.actions.size();
    return identity_ ? count : catalogue_.dim + per_action_ + context_ * count;
  }

  // Adds the row to the log, or says what is wrong with it.
  std::string Read(const CsvRows& rows, const Columns& columns, LoggedDecisions& log) {
    LoggedEvent event;
    const std::string_view action = rows.field(columns.action);
    const auto place = catalogue_.places.find(action);
    if (place == catalogue_.places.end()) {
      return WrongText(Name(rows, columns.action), action, "an action of the items file");
    }
    event.chosen = place->second;
    const std::string_view propensity = rows.field(columns.propensity);
    event.propensity = ParseNumber<double>(propensity).value_or(0);
    if (!(event.propensity > 0 && event.propensity <= 1)) {
      return WrongText(Name(rows, columns.propensity), propensity,
                       "a number above 0 and at most 1");
    }
    const auto reward = FiniteNumber(rows.field(columns.reward));
    if (!reward) return WrongNumber(rows, columns.reward);
    event.reward = *reward;
    if (columns.time) {
      const auto time = ParseTime(rows.field(*columns.time));
      if (!time) {
        return WrongText(Name(rows, *columns.time), rows.field(*columns.time),
                         "a time such as 2021-07-29T10:00:00Z, or seconds");
      }
      event.time_ms = *time;
    }
    if (const std::string problem = FillFeatures(rows, columns); !problem.empty()) return problem;
    std::string user;
    for (const std::size_t column : columns.user) user.append(rows.field(column)) += '|';
    event.user = log.users.Add(user);
    if (columns.group) event.group = log.groups.Add(rows.field(*columns.group));
    return log.Add(event, {.actions = actions_, .features = features_}).message();
  }

 private:
  static const std::string& Name(const CsvRows& rows, std::size_t column) {
    return rows.header()[column];
  }
  static std::string WrongNumber(const CsvRows& rows, std::size_t column) {
    return WrongText(Name(rows, column), rows.field(column), "a number within ±1e15");
  }

  std::string FillFeatures(const CsvRows& rows, const Columns& columns) {
    std::ranges::fill(features_, 0);
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      double* const row = features_.data() + a * dim();
      if (identity_) {
        row[a] = 1;
        continue;
      }
      std::copy_n(catalogue_.features.data() + a * catalogue_.dim, catalogue_.dim, row);
      if (per_action_ > 0) {
        const auto value = FiniteNumber(rows.field(columns.per_action[a]));
        if (!value) return WrongNumber(rows, columns.per_action[a]);
        row[catalogue_.dim] = *value;
      }
      for (std::size_t c = 0; c < context_; ++c) {
        const auto value = FiniteNumber(rows.field(columns.context[c]));
        if (!value) return WrongNumber(rows, columns.context[c]);
        row[catalogue_.dim + per_action_ + a * context_ + c] = *value;
      }
    }
    return "";
  }

  const Catalogue& catalogue_;
  std::size_t per_action_;
  std::size_t context_;
  bool identity_;
  std::vector<std::uint32_t> actions_;
  std::vector<double> features_;
};

}  // namespace

Result<LoggedData> ReadCsvLog(const LogSource& source, const CsvLogOptions& options) {
  const auto files = FindFiles(source);
  if (!files.ok()) return files.status();
  const auto catalogue =
      options.items_file.empty() ? CollectActions(files.value(), options) : ReadItems(options);
  if (!catalogue.ok()) return catalogue.status();
  if (catalogue.value().actions.empty()) {
    return Status::InvalidArgument(
        fmt::format("{} has no rows, expected decisions", source.files.front()));
  }
  RowReader reader(catalogue.value(), options);
  if (reader.dim() > kMaxFeatures) {
    return Status::InvalidArgument(
        fmt::format("{} actions with these columns have {} features, expected at most {}: give an "
                    "items file with --items or fewer --context-columns",
                    catalogue.value().actions.size(), reader.dim(), kMaxFeatures));
  }
  LoggedData read{.log = LoggedDecisions(reader.dim(), source.limits.memory_bytes), .summary = {}};
  for (const std::string& action : catalogue.value().actions) read.log.action_names.Add(action);
  LineCounter counter(source);
  bool timed = true;
  for (const std::string& file : files.value()) {
    auto rows = CsvRows::Open(file);
    if (!rows.ok()) return rows.status();
    const auto columns = FindColumns(rows.value(), options, catalogue.value());
    if (!columns.ok()) return columns.status();
    timed = timed && columns.value().time.has_value();
    while (rows.value().Next()) {
      counter.Line();
      if (source.limits.between) source.limits.between();
      std::string problem = rows.value().problem();
      const bool foreign = !problem.empty();
      if (!foreign) problem = reader.Read(rows.value(), columns.value(), read.log);
      if (problem.empty()) continue;
      CODBAND_RETURN_IF_ERROR(counter.Skip(file, rows.value().line(), problem, foreign));
    }
  }
  auto summary = counter.Finish({files.value(), source.leave_out}, read.log.size());
  if (!summary.ok()) return summary.status();
  read.summary = std::move(summary).value();
  read.summary.timed = timed;
  read.summary.features = fmt::format("{} from columns", reader.dim());
  return read;
}

Result<ChanceTable> ReadChances(const std::string& file) {
  auto opened = CsvRows::Open(file);
  if (!opened.ok()) return opened.status();
  CsvRows& rows = opened.value();
  const auto action = rows.Column("column", "action");
  if (!action.ok()) return action.status();
  const auto probability = rows.Column("column", "probability");
  if (!probability.ok()) return probability.status();
  const auto group = rows.Find("group");
  ChanceTable table;
  while (rows.Next()) {
    if (!rows.problem().empty()) return WrongAt(rows, rows.problem());
    const std::string_view text = rows.field(probability.value());
    const auto chance = FiniteNumber(text);
    if (!chance || *chance < 0) {
      return WrongAt(rows, WrongText("probability", text, "a number from 0 on"));
    }
    const std::string_view name = rows.field(action.value());
    if (!table.emplace(std::pair(group ? rows.field(*group) : "", name), *chance).second) {
      return WrongAt(rows, WrongText("action", name, "each action once in a group"));
    }
  }
  return table;
}

}  // namespace codband::eval
