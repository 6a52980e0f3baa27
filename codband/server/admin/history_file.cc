#include "codband/server/admin/history_file.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "codband/base/csv.h"
#include "codband/base/file.h"
#include "codband/base/lines.h"
#include "codband/base/parse.h"
#include "codband/base/text.h"

namespace codband::server {
namespace {

using HistoryValue = nlohmann::json;

constexpr std::size_t kMostProblems = 10;
constexpr int kProblemColumns = 300;
constexpr std::size_t kMostDepth = 60;  // of a line; of a request to the server 64

// A record of the file: an event for the server, or why there is none.
struct HistoryRecord {
  std::size_t line = 0;
  HistoryValue event = {};   // null: unusable
  std::string problem = {};  // if unusable
};

Result<std::vector<HistoryRecord>> ReadHistoryCsv(const HistoryFileOptions& options) {
  auto opened = CsvRows::Open(options.file);
  if (!opened.ok()) return opened.status();
  CsvRows rows = std::move(opened).value();
  const auto user = rows.Column("--user-column", options.user);
  if (!user.ok()) return user.status();
  const auto item = rows.Column("--item-column", options.item);
  if (!item.ok()) return item.status();
  const auto reward = rows.Column("--reward-column", options.reward);
  if (!reward.ok()) return reward.status();
  const std::optional<std::size_t> time = rows.Find(options.time);
  std::vector<HistoryRecord> records;
  while (rows.Next()) {
    HistoryRecord& record = records.emplace_back(HistoryRecord{.line = rows.line()});
    if (!rows.problem().empty()) {
      record.problem = rows.problem();
      continue;
    }
    const std::optional<double> value = ParseNumber<double>(rows.field(reward.value()));
    if (!value || !std::isfinite(*value)) {
      record.problem =
          fmt::format("{} = '{}', expected a number", options.reward, rows.field(reward.value()));
      continue;
    }
    record.event = {{"userId", rows.field(user.value())},
                    {"itemId", rows.field(item.value())},
                    {"value", *value}};
    if (time && !rows.field(*time).empty()) record.event["time"] = rows.field(*time);
  }
  return records;
}

// The value at a path such as "User.id"; null if there is none.
HistoryValue AtPath(const HistoryValue& object, std::string_view path) {
  const HistoryValue* here = &object;
  std::vector<std::string_view> parts;
  SplitText(path, ".", parts);
  for (const std::string_view part : parts) {
    if (!here->is_object() || !here->contains(part)) return {};
    here = &(*here)[std::string(part)];
  }
  return *here;
}

// The event of a logged decision: the action taken with its own features, minus its cost.
HistoryValue FromDsjson(const HistoryValue& line, const HistoryFileOptions& options,
                        std::string& problem) {
  const HistoryValue candidates = AtPath(line, "c._multi");
  HistoryValue index = AtPath(line, "_labelIndex");
  if (const HistoryValue action = AtPath(line, "_label_Action");
      !index.is_number_integer() && action.is_number_integer()) {
    index = std::max<std::int64_t>(action.get<std::int64_t>(), 0) - 1;
  }
  const HistoryValue cost = AtPath(line, "_label_cost");
  const HistoryValue user = AtPath(line.value("c", HistoryValue::object()), options.user_field);
  if (!candidates.is_array() || !index.is_number_integer() || !cost.is_number() ||
      !user.is_string()) {
    problem = fmt::format("is no decision with c._multi, _labelIndex, _label_cost and c.{}",
                          options.user_field);
    return {};
  }
  const auto place = index.get<std::int64_t>();
  if (place < 0 || static_cast<std::size_t>(place) >= candidates.size()) {
    problem = fmt::format("_labelIndex = {}, expected an action of the {} in c._multi", place,
                          candidates.size());
    return {};
  }
  HistoryValue action = candidates[static_cast<std::size_t>(place)];
  if (!action.is_object()) {
    problem = fmt::format("c._multi[{}] is no object", place);
    return {};
  }
  const HistoryValue tag = AtPath(action, "_tag");
  const HistoryValue inner = AtPath(action, "i.id");
  action.erase("_tag");
  // As our own decision log has them: by the names of their columns.
  if (action.contains("Features") && action["Features"].is_object()) {
    const HistoryValue features = action["Features"];
    action = features;
  }
  HistoryValue event = {
      {"userId", user},
      {"itemId", tag.is_string()     ? tag
                 : inner.is_string() ? inner
                                     : HistoryValue(fmt::format("action-{}", place + 1))},
      {"value", -cost.get<double>()},
      {"features", action}};
  const HistoryValue time = AtPath(line, "Timestamp");
  if (time.is_string()) event["time"] = time;
  return event;
}

Result<std::vector<HistoryRecord>> ReadHistoryLines(const HistoryFileOptions& options) {
  const auto text = ReadFile(options.file);
  if (!text.ok()) return text.status();
  std::vector<HistoryRecord> records;
  for (TextLines lines(text.value()); lines.Next();) {
    if (lines.line().find_first_not_of(" \t\r") == std::string_view::npos) continue;
    HistoryRecord& record = records.emplace_back(HistoryRecord{.line = lines.number()});
    if (NestsDeeper(lines.line(), kMostDepth)) {
      record.problem = fmt::format("nests deeper than {}", kMostDepth);
      continue;
    }
    const HistoryValue parsed = HistoryValue::parse(lines.line(), nullptr, false);
    if (!parsed.is_object()) {
      record.problem = "is no JSON object";
    } else if (options.format == HistoryFormat::kDsjson) {
      record.event = FromDsjson(parsed, options, record.problem);
    } else {
      record.event = parsed;
    }
  }
  return records;
}

// One bad record does not stop the others: what the server would refuse as a whole is left out.
void CheckRecord(HistoryRecord& record) {
  if (record.event.is_null()) return;
  for (const char* const field : {"userId", "itemId"}) {
    const HistoryValue value = record.event.value(field, HistoryValue());
    if (value.is_string() && !value.get_ref<const std::string&>().empty() &&
        IsUtf8(value.get_ref<const std::string&>())) {
      continue;
    }
    record.problem = fmt::format("{} is missing or empty, or is not UTF-8", field);
    record.event = {};
    return;
  }
  const HistoryValue time = record.event.value("time", HistoryValue());
  if (time.is_string() && !IsUtf8(time.get_ref<const std::string&>())) {
    record.problem = "time is not UTF-8";
    record.event = {};
  }
}

// What an earlier run has done: FILE.imported.
struct HistoryMark {
  std::size_t records = 0;
  std::string first = {};   // hash of the first record: whether it is the same file
  std::string server = {};  // that they were sent to

  Status Write(const std::string& file) const {
    const HistoryValue mark = {{"records", records}, {"first", first}, {"server", server}};
    return WriteFileDurably(file + ".imported", mark.dump() + "\n");
  }
};

std::string HashOf(const std::string& text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Result<HistoryMark> ReadMark(const HistoryFileOptions& options,
                             const std::vector<HistoryRecord>& records) {
  const HistoryMark fresh{.first = HashOf(records.front().event.dump()), .server = options.server};
  const auto text = ReadFile(options.file + ".imported");
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) return fresh;
  if (!text.ok()) return text.status();
  const HistoryValue json = HistoryValue::parse(text.value(), nullptr, false);
  const HistoryValue server = AtPath(json, "server");
  // Another server has had none of it; one that had, learns no event twice.
  if (json.is_object() && (server.is_null() || server.is_string()) && server != options.server) {
    return fresh;
  }
  if (server == options.server && AtPath(json, "first") == fresh.first &&
      AtPath(json, "records").is_number_unsigned() &&
      json["records"].get<std::size_t>() <= records.size()) {
    HistoryMark mark = fresh;
    mark.records = json["records"].get<std::size_t>();
    return mark;
  }
  return Status::InvalidArgument(
      fmt::format("{0}.imported is not of this file; remove it to import {0} from its beginning",
                  options.file));
}

void LeaveOut(const HistoryFileOptions& options, std::size_t line, std::string_view problem,
              HistoryFileReport& report) {
  ++report.left_out;
  if (report.problems.size() < kMostProblems) {
    // Files that are no text must not reach a terminal as they are.
    report.problems.push_back(
        fmt::format("{}:{}: {}", options.file, line, Truncate(OneLine(problem), kProblemColumns)));
  }
}

// Sends records [begin, end) and counts what became of them.
Status SendHistoryBatch(const HistoryFileOptions& options,
                        const std::vector<HistoryRecord>& records, std::size_t begin,
                        std::size_t end, const PostHistory& post, HistoryFileReport& report) {
  HistoryValue events = HistoryValue::array();
  std::vector<std::size_t> lines;
  for (std::size_t i = begin; i < end; ++i) {
    if (records[i].event.is_null()) {
      LeaveOut(options, records[i].line, records[i].problem, report);
      continue;
    }
    HistoryValue event = records[i].event;
    if (!event.contains("eventId")) {
      event["eventId"] = "history-" + HashOf(fmt::format("{} {}", i, event.dump()));
    }
    events.push_back(std::move(event));
    lines.push_back(records[i].line);
  }
  if (events.empty()) return {};
  const auto reply = post(HistoryValue{{"events", std::move(events)}}.dump());
  if (!reply.ok()) return reply.status();
  const HistoryValue json = HistoryValue::parse(reply.value(), nullptr, false);
  if (!json.is_object() || !json.contains("skipped")) {
    return {StatusCode::kIoError, "the server's reply is not that of POST /v1/history"};
  }
  report.accepted += json.value("accepted", std::size_t{0});
  report.duplicates += json.value("duplicates", std::size_t{0});
  for (const HistoryValue& skipped : json["skipped"]) {
    const auto index = skipped.value("index", std::size_t{0});
    LeaveOut(options, index < lines.size() ? lines[index] : 0, skipped.value("reason", ""), report);
  }
  return {};
}

}  // namespace

Result<HistoryFileReport> SendHistoryFile(const HistoryFileOptions& options,
                                          const PostHistory& post) {
  auto records =
      options.format == HistoryFormat::kCsv ? ReadHistoryCsv(options) : ReadHistoryLines(options);
  if (!records.ok()) return records.status();
  for (HistoryRecord& record : records.value()) CheckRecord(record);
  const std::vector<HistoryRecord>& all = records.value();
  if (all.empty()) {
    return Status::InvalidArgument(fmt::format("{}: has no records", options.file));
  }
  auto read = ReadMark(options, all);
  if (!read.ok()) return read.status();
  HistoryMark mark = read.value();
  HistoryFileReport report{.records = all.size(), .resumed = mark.records};
  while (mark.records < all.size()) {
    const std::size_t end = std::min(mark.records + options.batch, all.size());
    CODBAND_RETURN_IF_ERROR(SendHistoryBatch(options, all, mark.records, end, post, report));
    if (options.progress) {
      options.progress(static_cast<double>(end - mark.records) / static_cast<double>(all.size()));
    }
    mark.records = end;
    CODBAND_RETURN_IF_ERROR(mark.Write(options.file));
  }
  return report;
}

}  // namespace codband::server
