#include "codband/experiments/run_store.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "codband/base/bytes.h"
#include "codband/base/file.h"

namespace codband::experiments {
namespace {

using RunJson = nlohmann::json;

RunJson ToJson(const sim::RunResult& run) {
  return {{"regret", run.regret},
          {"changes",
           {{"true", run.changes.true_changes},
            {"detected", run.changes.detected},
            {"false_alarms", run.changes.false_alarms},
            {"stable_steps", run.changes.stable_steps},
            {"delays", run.changes.delays}}},
          {"clusters",
           {{"same_both", run.clusters.same_both},
            {"same_model", run.clusters.same_model},
            {"same_truth", run.clusters.same_truth}}},
          {"models", run.models},
          {"us_per_step", run.us_per_step},
          {"us_per_step_halves", {run.us_per_step_first_half, run.us_per_step_second_half}},
          {"user_models", run.user_models},
          {"true_changes", run.true_changes}};
}

sim::RunResult FromJson(const RunJson& json) {
  sim::RunResult run;
  json.at("regret").get_to(run.regret);
  const RunJson& changes = json.at("changes");
  changes.at("true").get_to(run.changes.true_changes);
  changes.at("detected").get_to(run.changes.detected);
  changes.at("false_alarms").get_to(run.changes.false_alarms);
  changes.at("stable_steps").get_to(run.changes.stable_steps);
  changes.at("delays").get_to(run.changes.delays);
  const RunJson& clusters = json.at("clusters");
  clusters.at("same_both").get_to(run.clusters.same_both);
  clusters.at("same_model").get_to(run.clusters.same_model);
  clusters.at("same_truth").get_to(run.clusters.same_truth);
  json.at("models").get_to(run.models);
  json.at("us_per_step").get_to(run.us_per_step);
  json.at("us_per_step_halves").at(0).get_to(run.us_per_step_first_half);
  json.at("us_per_step_halves").at(1).get_to(run.us_per_step_second_half);
  json.at("user_models").get_to(run.user_models);
  json.at("true_changes").get_to(run.true_changes);
  return run;
}

}  // namespace

std::string RunStore::PathFor(const std::string& identity) const {
  // Two checksums of different texts. Should names collide all the same, the identity inside tells
  // the files apart.
  return fmt::format("{}/{:08x}{:08x}.json", directory_, Crc32(identity), Crc32(identity + "#"));
}

std::optional<sim::RunResult> RunStore::Load(const std::string& identity) const {
  const auto text = ReadFile(PathFor(identity));
  if (!text.ok()) return std::nullopt;
  try {
    const RunJson json = RunJson::parse(text.value());
    if (json.at("identity") != identity) return std::nullopt;
    return FromJson(json.at("run"));
  } catch (const RunJson::exception&) {
    return std::nullopt;
  }
}

Status RunStore::Save(const std::string& identity, const sim::RunResult& run) const {
  return WriteFileDurably(PathFor(identity),
                          RunJson{{"identity", identity}, {"run", ToJson(run)}}.dump() + "\n");
}

}  // namespace codband::experiments
