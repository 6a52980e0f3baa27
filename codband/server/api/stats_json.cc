#include "codband/server/api/stats_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "codband/base/time.h"
#include "codband/base/version.h"
#include "codband/server/api/json_text.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;
using engine::Activity;
using engine::Moments;

// Sums and squares let the reader add up points.
Json MomentsJson(const Moments& moments) {
  Json json{{"count", moments.count}, {"sum", moments.sum}, {"squares", moments.squares}};
  if (const auto estimate = moments.Estimate()) {
    json["mean"] = estimate->mean;
    json["low"] = estimate->low;
    json["high"] = estimate->high;
  }
  return json;
}

void AddActivity(Json& json, const Activity& activity) {
  json["decisions"] = activity.decisions;
  json["rewards"] = MomentsJson(activity.all_rewards());
  Json by = Json::array();
  for (std::size_t mode = 0; mode < Activity::kModes; ++mode) {
    for (std::size_t source = 0; source < Activity::kSources; ++source) {
      const Moments& rewards = activity.rewards[mode][source];
      if (rewards.count == 0) continue;
      by.push_back({{"mode", engine::kModeNames[mode]},
                    {"source", engine::kSourceNames[source]},
                    {"count", rewards.count},
                    {"sum", rewards.sum}});
    }
  }
  json["rewardsBy"] = std::move(by);
  json["defaulted"] = activity.defaulted;
  json["duplicate"] = activity.duplicate;
  json["late"] = activity.late;
  json["unknown"] = activity.unknown;
  json["baseline"] = MomentsJson(activity.baseline);
  json["uniform"] = MomentsJson(activity.uniform);
  json["compared"] = activity.compared;
  json["agreed"] = activity.agreed;
  json["delaySeconds"] = MomentsJson(activity.delay_s);
}

void AddGroups(Json& json, const engine::GroupActivity& groups) {
  json["changes"] = groups.changes;
  json["users"] = groups.users;
  Json sizes = Json::array();
  for (const auto& [model, users] : groups.groups) {
    sizes.push_back({{"modelId", model}, {"users", users}});
  }
  json["groups"] = std::move(sizes);
}

Json PointJson(const engine::SeriesReport::Point& point) {
  Json json{{"time", FormatRfc3339(point.time_ms)}};
  AddActivity(json, point.activity);
  AddGroups(json, point.groups);
  return json;
}

Json ModelJson(ModelId model) { return model == kNoModel ? Json(nullptr) : Json(model); }

Json ChangeJson(const engine::Change& change) {
  Json json{{"time", FormatRfc3339(change.time_ms)},
            {"userId", change.user},
            {"fromModelId", ModelJson(change.from)},
            {"toModelId", ModelJson(change.to)}};
  if (change.evidence.rewards > 0) {
    json["evidence"] = {{"rewards", change.evidence.rewards},
                        {"expected", change.evidence.expected},
                        {"got", change.evidence.got},
                        {"before", change.evidence.before}};
  }
  return json;
}

Json StatsJson(const engine::EngineStats& stats) {
  return {{"policy", stats.policy},
          {"features", stats.dim},
          {"ranks", stats.ranks},
          {"rewardsAccepted", stats.rewards_accepted},
          {"rewardsLate", stats.rewards_late},
          {"rewardsUnknown", stats.rewards_unknown},
          {"rewardsDefaulted", stats.rewards_defaulted},
          {"users", stats.users},
          {"models", stats.models},
          {"items", stats.items},
          {"pending", stats.pending},
          {"changes", stats.changes},
          {"changesLastHour", stats.changes_last_hour},
          {"learnerLag",
           stats.committed_sequence - std::min(stats.committed_sequence, stats.applied_sequence)},
          {"queue", stats.queue},
          {"quarantined", stats.quarantined},
          {"damage", stats.damage.size()},
          {"erasing", stats.erasing},
          {"sharingNames", stats.sharing_names},
          {"sharedColumns", stats.shared_columns},
          {"columnsLimit", stats.columns_limit},
          {"diskBytes", stats.store.disk_bytes},
          {"lastError", stats.last_error}};
}

}  // namespace

void AppendSeries(std::string& out, const engine::SeriesReport& series, std::int64_t from_ms,
                  std::int64_t to_ms) {
  Json points = Json::array();
  Activity all;
  engine::GroupActivity groups;
  for (const engine::SeriesReport::Point& point : series.points) {
    points.push_back(PointJson(point));
    all += point.activity;
    groups += point.groups;
  }
  Json total = Json::object();
  AddActivity(total, all);
  AddGroups(total, groups);
  out += JsonText({{"from", FormatRfc3339(from_ms)},
                   {"to", FormatRfc3339(to_ms)},
                   {"stepSeconds", series.step_ms / 1000},
                   {"points", std::move(points)},
                   {"total", std::move(total)}});
}

std::string LiveJson(const LiveFacts& facts) {
  Json changes = Json::array();
  for (const engine::Change& change : facts.changes) changes.push_back(ChangeJson(change));
  Json since = Json::object();
  AddActivity(since, facts.stats.activity);
  return JsonText({{"time", FormatRfc3339(facts.server.now_ms)},
                   {"start", FormatRfc3339(facts.server.start_time_ms)},
                   {"version", kVersion},
                   {"mode", facts.mode},
                   {"stats", StatsJson(facts.stats)},
                   {"decisionLogLost", facts.log_lost},
                   {"connections", facts.server.connections},
                   {"connectionsLimit", facts.server.max_connections},
                   {"point", facts.minute.points.empty() ? Json(nullptr)
                                                         : PointJson(facts.minute.points.back())},
                   {"sinceStart", std::move(since)},
                   {"changes", std::move(changes)}});
}

}  // namespace codband::server
