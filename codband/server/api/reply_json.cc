#include "codband/server/api/reply_json.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codband/base/check.h"
#include "codband/base/time.h"
#include "codband/server/api/json_writer.h"

namespace codband::server {
namespace {

// `key` with its quotes and colon, and the comma before it: ",\"mean\":".
template <typename T>
void AppendMember(std::string& out, std::string_view key, const T& value) {
  out += key;
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    AppendJsonString(out, value);
  } else {
    AppendJsonNumber(out, value);
  }
}

void AppendModelId(std::string& out, std::string_view key, ModelId model) {
  out += key;
  if (model == kNoModel) {
    out += "null";
  } else {
    AppendJsonNumber(out, model);
  }
}

void AppendTimeMember(std::string& out, std::string_view key, std::int64_t time_ms) {
  out += key;
  out += '"';
  AppendRfc3339(out, time_ms);
  out += '"';
}

// "[a,b,c]" with `append` for each.
template <typename Range, typename Append>
void AppendList(std::string& out, std::string_view key, const Range& range, const Append& append) {
  out += key;
  out += '[';
  bool first = true;
  for (const auto& element : range) {
    if (!first) out += ',';
    first = false;
    append(element);
  }
  out += ']';
}

void AppendExplanation(std::string& out, const engine::Explanation& explanation) {
  AppendList(out, ",\"explanation\":{\"contributions\":", explanation.contributions,
             [&](const engine::Explanation::Contribution& part) {
               AppendMember(out, "{\"feature\":", part.feature);
               AppendMember(out, ",\"value\":", part.value);
               out += '}';
             });
  AppendMember(out, ",\"intercept\":", explanation.intercept);
  AppendMember(out, ",\"item\":", explanation.item);
  AppendMember(out, ",\"groupUsers\":", explanation.group_users);
  AppendMember(out, ",\"groupObservations\":", explanation.group_observations);
  if (explanation.last_change_ms) {
    AppendTimeMember(out, ",\"lastChange\":", *explanation.last_change_ms);
  } else {
    out += ",\"lastChange\":null";
  }
  out += '}';
}

void AppendChange(std::string& out, const engine::Change& change, bool with_user) {
  AppendTimeMember(out, "{\"time\":", change.time_ms);
  if (with_user) AppendMember(out, ",\"userId\":", change.user);
  AppendModelId(out, ",\"fromModelId\":", change.from);
  AppendModelId(out, ",\"toModelId\":", change.to);
  if (change.evidence.rewards > 0) {
    AppendMember(out, ",\"evidence\":{\"rewards\":", std::uint64_t{change.evidence.rewards});
    AppendMember(out, ",\"expected\":", double{change.evidence.expected});
    AppendMember(out, ",\"got\":", double{change.evidence.got});
    AppendMember(out, ",\"before\":", double{change.evidence.before});
    out += '}';
  }
  out += '}';
}

// Without the closing brace.
void AppendModelStart(std::string& out, const engine::ModelReport& model) {
  AppendModelId(out, "{\"modelId\":", model.id);
  AppendMember(out, ",\"popularity\":", model.popularity);
  AppendMember(out, ",\"users\":", model.users);
  AppendMember(out, ",\"periods\":", model.periods);
  AppendMember(out, ",\"observations\":", model.observations);
  const auto append_top = [&](std::string_view name, std::string_view weight,
                              const engine::ModelReport::Top& top) {
    AppendMember(out, name, top.name);
    AppendMember(out, weight, top.weight);
  };
  AppendList(out, ",\"topItems\":", model.items, [&](const engine::ModelReport::Top& top) {
    append_top("{\"id\":", ",\"mean\":", top);
    out += '}';
  });
  AppendList(out, ",\"bottomItems\":", model.worst, [&](const engine::ModelReport::Top& top) {
    append_top("{\"id\":", ",\"mean\":", top);
    out += '}';
  });
  AppendList(out, ",\"topTags\":", model.tags, [&](const engine::ModelReport::Top& top) {
    append_top("{\"tag\":", ",\"count\":", top);
    AppendMember(out, ",\"lift\":", top.lift);
    out += '}';
  });
}

}  // namespace

namespace {

// Writes to memory that is known to be large enough, without a check for each piece.
class Cursor {
 public:
  explicit Cursor(char* at) : at_(at) {}

  template <std::size_t N>
  void Text(const char (&literal)[N]) {
    std::memcpy(at_, literal, N - 1);
    at_ += N - 1;
  }
  void Text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  template <typename Real>
  void Number(Real value) {
    if (std::isfinite(value)) {
      at_ = fmt::format_to(at_, FMT_COMPILE("{}"), value);
    } else {
      Text("null");
    }
  }
  char* at() const { return at_; }

 private:
  char* at_;
};

constexpr std::size_t kLongestNumber = 32;

// One column of a ranking. Many of its numbers repeat: the text of the last one is kept.
template <typename Real>
class Column {
 public:
  void Append(Cursor& out, double value) {
    const auto rounded = static_cast<Real>(value);
    if (text_.empty() || rounded != last_) {
      last_ = rounded;
      const char* const start = out.at();
      out.Number(rounded);
      text_ = {start, static_cast<std::size_t>(out.at() - start)};
    } else {
      out.Text(text_);
    }
  }

 private:
  Real last_ = 0;
  std::string_view text_;  // in the output
};

}  // namespace

void AppendRankReply(std::string& out, const engine::RankReply& reply) {
  AppendMember(out, "{\"eventId\":", reply.event_id);
  AppendMember(out, ",\"rewardActionId\":", reply.reward_action_id);
  out += ",\"ranking\":[";
  // The names of the fields, four numbers, and an id of which every byte may need six.
  std::size_t most = 0;
  for (const engine::RankedItem& item : reply.ranking) {
    most += 64 + 4 * kLongestNumber + 6 * item.id.size();
  }
  const std::size_t start = out.size();
  out.resize(start + most);
  Cursor cursor(out.data() + start);
  Column<double> probability;
  Column<float> score;  // and the mean, which is often the same
  Column<float> width;
  std::string escaped;
  for (const engine::RankedItem& item : reply.ranking) {
    cursor.Text("{\"id\":");
    if (std::ranges::all_of(item.id, IsPlainInJson)) {
      cursor.Text("\"");
      cursor.Text(item.id);
      cursor.Text("\"");
    } else {
      escaped.clear();
      AppendJsonString(escaped, item.id);
      cursor.Text(escaped);
    }
    cursor.Text(",\"probability\":");
    probability.Append(cursor, item.probability);
    cursor.Text(",\"score\":");
    score.Append(cursor, item.score);
    cursor.Text(",\"mean\":");
    score.Append(cursor, item.mean);
    cursor.Text(",\"width\":");
    width.Append(cursor, item.width);
    cursor.Text("},");
  }
  const std::size_t end = static_cast<std::size_t>(cursor.at() - out.data());
  CODBAND_CHECK(end <= out.size());
  out.resize(end);
  if (!reply.ranking.empty()) out.pop_back();  // the last comma
  out += ']';
  AppendModelId(out, ",\"modelId\":", reply.model);
  if (reply.explanation) AppendExplanation(out, *reply.explanation);
  out += '}';
}

void AppendRewardReply(std::string& out, std::string_view event_id,
                       const engine::RewardReply& reply) {
  AppendMember(out, "{\"eventId\":", event_id);
  out += reply.outcome == engine::RewardOutcome::kAccepted ? ",\"status\":\"accepted\""
                                                           : ",\"status\":\"duplicate\"";
  AppendMember(out, ",\"sequence\":", reply.sequence);
  out += '}';
}

void AppendItem(std::string& out, const engine::Item& item,
                const std::optional<ItemDescription>& learned) {
  AppendMember(out, "{\"id\":", item.id);
  AppendList(out, ",\"features\":", item.features, [&](double x) { AppendJsonNumber(out, x); });
  if (!item.named.empty()) {
    AppendList(out, ",\"named\":", item.named, [&](const features::NamedFeature& feature) {
      AppendMember(out, "{\"name\":", feature.name);
      AppendMember(out, ",\"value\":", feature.value);
      out += '}';
    });
  }
  AppendList(out, ",\"tags\":", item.tags,
             [&](const std::string& tag) { AppendJsonString(out, tag); });
  if (learned) {
    AppendMember(out, ",\"learned\":{\"shown\":", learned->shown);
    AppendMember(out, ",\"reward\":", learned->reward);
    AppendMember(out, ",\"effect\":", learned->effect);
    AppendMember(out, ",\"width\":", learned->width);
    AppendList(out, ",\"groups\":", learned->groups, [&](const ItemDescription::Group& group) {
      AppendModelId(out, "{\"modelId\":", group.model);
      AppendMember(out, ",\"users\":", group.users);
      AppendMember(out, ",\"effect\":", group.effect);
      AppendMember(out, ",\"width\":", group.width);
      out += '}';
    });
    out += '}';
  }
  out += '}';
}

void AppendItems(std::string& out, std::span<const engine::Item> items, std::size_t limit,
                 std::span<const std::optional<ItemDescription>> learned) {
  std::size_t index = 0;
  AppendList(out, "{\"items\":", items, [&](const engine::Item& item) {
    AppendItem(out, item, learned.empty() ? std::nullopt : learned[index++]);
  });
  out += ",\"next\":";
  std::size_t bytes = 0;
  for (const engine::Item& item : items) bytes += item.bytes();
  if (items.size() < limit && bytes < engine::kItemPageBytes) {
    out += "null";
  } else {
    AppendJsonString(out, items.back().id);
  }
  out += '}';
}

void AppendFeatures(std::string& out, const engine::FeatureReport& report) {
  AppendMember(out, "{\"limit\":", std::uint64_t{report.limit});
  AppendList(out, ",\"columns\":", report.columns, [&](const engine::ColumnReport& column) {
    AppendMember(out, "{\"name\":", column.name);
    AppendMember(out, ",\"kind\":", column.kind);
    AppendMember(out, ",\"count\":", column.count);
    AppendMember(out, ",\"min\":", column.min);
    AppendMember(out, ",\"max\":", column.max);
    AppendMember(out, ",\"importance\":", column.importance);
    out += '}';
  });
  AppendList(out, ",\"sharing\":", report.sharing,
             [&](const std::string& name) { AppendJsonString(out, name); });
  out += '}';
}

void AppendUser(std::string& out, const engine::UserReport& report) {
  AppendMember(out, "{\"userId\":", report.user);
  AppendModelId(out, ",\"modelId\":", report.model);
  AppendMember(out, ",\"modelChance\":", report.model_chance);
  AppendTimeMember(out, ",\"firstSeen\":", report.first_ms);
  AppendTimeMember(out, ",\"since\":", report.since_ms);
  AppendMember(out, ",\"observations\":", report.observations);
  AppendMember(out, ",\"periodObservations\":", report.period_observations);
  AppendList(out, ",\"changes\":", report.changes,
             [&](const engine::Change& change) { AppendChange(out, change, false); });
  AppendList(out, ",\"lastRewards\":", report.ticks, [&](const engine::RewardTick& tick) {
    AppendTimeMember(out, "{\"time\":", tick.time_ms);
    AppendMember(out, ",\"reward\":", double{tick.reward});
    AppendMember(out, ",\"expected\":", double{tick.expected});
    out += '}';
  });
  out += '}';
}

void AppendModels(std::string& out, std::span<const engine::ModelReport> models) {
  AppendList(out, "{\"models\":", models, [&](const engine::ModelReport& model) {
    AppendModelStart(out, model);
    out += '}';
  });
  out += '}';
}

void AppendModel(std::string& out, const engine::ModelReport& model) {
  AppendModelStart(out, model);
  AppendList(out, ",\"parameter\":", model.parameter, [&](double x) { AppendJsonNumber(out, x); });
  out += '}';
}

void AppendChanges(std::string& out, std::span<const engine::Change> changes) {
  AppendList(out, "{\"changes\":", changes,
             [&](const engine::Change& change) { AppendChange(out, change, true); });
  out += '}';
}

void AppendBackupReply(std::string& out, std::string_view name) {
  AppendMember(out, "{\"name\":", name);
  out += '}';
}

void AppendError(std::string& out, const HttpError& error,
                 const std::optional<ImportProgress>& progress) {
  AppendMember(out, "{\"error\":{\"code\":", error.code);
  if (!error.field.empty()) AppendMember(out, ",\"field\":", error.field);
  AppendMember(out, ",\"message\":", error.message);
  if (progress) {
    if (progress->line) AppendMember(out, ",\"line\":", *progress->line);
    AppendMember(out, ",\"imported\":", progress->imported);
  }
  out += "}}";
}

}  // namespace codband::server
