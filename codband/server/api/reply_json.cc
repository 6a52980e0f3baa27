#include "codband/server/api/reply_json.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "codband/base/float_text.h"
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

// Writes to a string by way of a piece of memory, without a check for each part.
class Cursor {
 public:
  explicit Cursor(std::string& out) : out_(out) {}
  ~Cursor() { Flushed(); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Room for so many bytes, kMost at most, which Text and Number may use.
  static constexpr std::size_t kMost = 4096;
  void Reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(piece_.data() + kMost - at_) < bytes) Flushed();
  }
  template <std::size_t N>
  void Text(const char (&literal)[N]) {
    std::memcpy(at_, literal, N - 1);
    at_ += N - 1;
  }
  void Text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  char* at() { return at_; }
  void Advance(char* to) { at_ = to; }
  // The string with all that was written.
  std::string& Flushed() {
    out_.append(piece_.data(), static_cast<std::size_t>(at_ - piece_.data()));
    at_ = piece_.data();
    return out_;
  }

 private:
  std::string& out_;
  std::array<char, kMost> piece_;
  char* at_ = piece_.data();
};

constexpr std::size_t kLongestNumber = 32;

// One column of a ranking. Many of its numbers repeat: the text of the last one is kept.
template <typename Real>
class Column {
 public:
  void Append(Cursor& out, double value) {
    const auto rounded = static_cast<Real>(value);
    if (size_ == 0 || rounded != last_) Write(rounded);
    std::memcpy(out.at(), text_.data(), kLongestNumber);
    out.Advance(out.at() + size_);
  }

 private:
  void Write(Real value) {
    last_ = value;
    const char* end = nullptr;
    if (!std::isfinite(value)) {
      std::memcpy(text_.data(), "null", 4);
      end = text_.data() + 4;
    } else if constexpr (std::is_same_v<Real, float>) {
      end = WriteShortest(text_.data(), value);
    } else {
      end = fmt::format_to(text_.data(), FMT_COMPILE("{}"), value);
    }
    size_ = static_cast<std::size_t>(end - text_.data());
  }

  Real last_ = 0;
  std::array<char, kLongestNumber> text_{};
  std::size_t size_ = 0;
};

void AppendRanking(std::string& out, const std::vector<engine::RankedItem>& ranking) {
  // The names of the fields, four numbers and an id.
  constexpr std::size_t kLongest = 64 + 4 * kLongestNumber + engine::kMaxIdBytes;
  static_assert(kLongest <= Cursor::kMost);
  Cursor cursor(out);
  Column<double> probability;
  Column<float> score;  // and the mean, which is often the same
  Column<float> width;
  for (const engine::RankedItem& item : ranking) {
    cursor.Reserve(kLongest);
    if (item.id.size() <= engine::kMaxIdBytes && IsPlainInJson(item.id)) {
      cursor.Text("{\"id\":\"");
      cursor.Text(item.id);
      cursor.Text("\"");
    } else {
      cursor.Text("{\"id\":");
      AppendJsonString(cursor.Flushed(), item.id);
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
}

}  // namespace

void AppendRankReply(std::string& out, const engine::RankReply& reply) {
  AppendMember(out, "{\"eventId\":", reply.event_id);
  AppendMember(out, ",\"rewardActionId\":", reply.reward_action_id);
  out += ",\"ranking\":[";
  AppendRanking(out, reply.ranking);
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
