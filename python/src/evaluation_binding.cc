// Off-policy evaluation: of logs, and of plain arrays.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "codband/eval/log_reader.h"
#include "codband/eval/make_target.h"
#include "codband/experiments/evaluate_output.h"
#include "codband/policy/registry.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/scripted.h"

namespace codband::python {
namespace {

using namespace py::literals;
using Factories = std::map<std::string, py::object>;

std::unique_ptr<eval::LoggedData> ReadFiles(const std::vector<std::string>& files, bool csv,
                                            const std::string& bad_lines,
                                            const std::map<std::string, std::string>& columns) {
  eval::LogSource source{.files = files};
  if (bad_lines == "fail") {
    source.leave_out = eval::BadLines::kFail;
  } else if (bad_lines == "skip") {
    source.leave_out = eval::BadLines::kAny;
  } else if (bad_lines != "foreign") {
    throw py::value_error(
        fmt::format("bad_lines: is '{}', expected one of fail, foreign, skip", bad_lines));
  }
  eval::CsvLogOptions options;
  const std::pair<const char*, std::string*> names[] = {{"action", &options.action},
                                                        {"reward", &options.reward},
                                                        {"propensity", &options.propensity},
                                                        {"user", &options.user},
                                                        {"time", &options.time},
                                                        {"group", &options.group},
                                                        {"context", &options.context},
                                                        {"action_prefix", &options.action_prefix},
                                                        {"items_file", &options.items_file},
                                                        {"items_column", &options.items_column}};
  for (const auto& [name, column] : columns) {
    const auto* const found =
        std::ranges::find_if(names, [&](const auto& entry) { return entry.first == name; });
    if (found == std::end(names)) throw py::value_error(fmt::format("{}: is no column", name));
    *found->second = column;
  }
  const py::gil_scoped_release release;
  auto read = csv ? eval::ReadCsvLog(source, options) : eval::ReadDsJsonLog(source, {});
  const py::gil_scoped_acquire acquire;
  return std::make_unique<eval::LoggedData>(ValueOf(std::move(read)));
}

// Every array has a row for each event; features are (events, actions, dim) or (actions, dim).
std::unique_ptr<eval::LoggedData> FromArrays(const std::vector<std::string>& users,
                                             const std::vector<std::uint32_t>& chosen,
                                             py::handle rewards, py::handle propensities,
                                             py::handle features,
                                             const std::vector<std::string>& actions) {
  const std::size_t events = users.size();
  const auto column = [&](py::handle values, const char* field) {
    Doubles array = ToDoubles(values, field, 1, fmt::format("({},)", events));
    if (Values(array).size() != events) {
      throw py::value_error(
          fmt::format("{}: has {} entries, expected {}", field, array.size(), events));
    }
    return array;
  };
  const Doubles reward = column(rewards, "reward");
  const Doubles propensity = column(propensities, "pscore");
  const Doubles offer = ToDoubles(features, "features");
  const bool each = offer.ndim() == 3;
  const auto axis = [&](py::ssize_t i) { return static_cast<std::size_t>(offer.shape(i)); };
  if ((!each && offer.ndim() != 2) || axis(offer.ndim() - 2) != actions.size() ||
      (each && axis(0) != events) || axis(offer.ndim() - 1) < 1 ||
      axis(offer.ndim() - 1) > kMaxFeatures) {
    throw py::value_error(fmt::format(
        "features: has the shape {}, expected ({}, {}, dim) or ({}, dim) with dim from 1 to {}",
        std::string(py::str(offer.attr("shape"))), events, actions.size(), actions.size(),
        kMaxFeatures));
  }
  const std::size_t dim = axis(offer.ndim() - 1);
  auto data = std::make_unique<eval::LoggedData>(
      eval::LoggedData{.log = eval::LoggedDecisions(dim), .summary = {}});
  std::vector<std::uint32_t> offered;
  for (const std::string& action : actions) offered.push_back(data->log.action_names.Add(action));
  const std::size_t size = actions.size() * dim;
  for (std::size_t i = 0; i < events; ++i) {
    const Status added = data->log.Add(
        {.user = data->log.users.Add(users[i]),
         .time_ms = static_cast<std::int64_t>(i),
         .group = data->log.groups.Add(""),
         .chosen = chosen[i],
         .propensity = Values(propensity)[i],
         .reward = Values(reward)[i]},
        {.actions = offered, .features = Values(offer).subspan(each ? i * size : 0, size)});
    if (!added.ok()) {
      throw py::value_error(fmt::format("event {}: {}", i, added.message()));
    }
  }
  data->summary.lines = events;
  return data;
}

py::dict LogArrays(const eval::LoggedData& data) {
  const eval::LoggedDecisions& log = data.log;
  std::vector<double> rewards, propensities;
  std::vector<std::int64_t> chosen, times;
  std::vector<std::string> users, actions;
  py::list candidates, features;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const eval::LoggedEvent& event = log.event(i);
    rewards.push_back(event.reward);
    propensities.push_back(event.propensity);
    times.push_back(event.time_ms);
    users.push_back(log.users.name(static_cast<std::uint32_t>(event.user)));
    chosen.push_back(log.actions(i)[event.chosen]);
    candidates.append(CopyOf(log.actions(i)));
    const std::vector<std::size_t> shape = {log.candidate_count(i), log.dim()};
    features.append(py::array_t<double>(shape, log.arms(i).features.data()));
  }
  for (std::uint32_t a = 0; a < log.action_names.size(); ++a) {
    actions.push_back(log.action_names.name(a));
  }
  return py::dict("users"_a = users, "actions"_a = actions,
                  "reward"_a = CopyOf(std::span<const double>(rewards)),
                  "pscore"_a = CopyOf(std::span<const double>(propensities)),
                  "action"_a = CopyOf(std::span<const std::int64_t>(chosen)),
                  "time_ms"_a = CopyOf(std::span<const std::int64_t>(times)),
                  "candidates"_a = candidates, "features"_a = features);
}

std::string EvaluateLog(const eval::LoggedData& data, const std::vector<std::string>& policies,
                        const Factories& factories, double floor, double confidence,
                        std::size_t resamples, std::uint64_t seed, std::size_t threads) {
  std::vector<std::unique_ptr<eval::Target>> targets;
  const eval::PolicyTargetOptions options{.seed = seed, .floor = floor};
  if (!(floor >= 0 && floor <= 1)) {
    throw py::value_error(fmt::format("floor: is {}, expected a number from 0 to 1", floor));
  }
  for (const std::string& name : policies) {
    const auto scripted = factories.find(name);
    if (scripted == factories.end()) {
      targets.push_back(ValueOf(eval::MakeTarget(name, data.log, options)));
    } else {
      targets.push_back(eval::MakePolicyTarget(
          name, MakeScriptedPolicy(name, data.log.dim(), scripted->second(data.log.dim())),
          options));
    }
  }
  experiments::EvaluationRecord record;
  record.options = {
      .confidence = confidence, .resamples = resamples, .seed = seed, .threads = threads};
  record.log = data.summary;
  record.dim = data.log.dim();
  record.users = data.log.users.size();
  record.actions = data.log.action_names.size();
  auto text = [&]() -> Result<std::string> {
    const py::gil_scoped_release release;
    auto evaluation = eval::Evaluate(data.log, targets, record.options);
    if (!evaluation.ok()) return evaluation.status();
    record.evaluation = std::move(evaluation).value();
    return experiments::ToJson(record);
  }();
  return ValueOf(std::move(text));
}

// One estimator on arrays: of each event the weight, the reward, what a model predicts for the
// logged action, and the mean of its predictions under the target.
py::dict EstimateArrays(const std::string& name, py::handle weights, py::handle rewards,
                        py::handle predicted, py::handle values, double confidence,
                        std::size_t resamples, std::uint64_t seed) {
  const Doubles w = ToDoubles(weights, "weight", 1, "(events,)");
  const Doubles r = ToDoubles(rewards, "reward", 1, "(events,)");
  const Doubles q = ToDoubles(predicted, "predicted", 1, "(events,)");
  const Doubles v = ToDoubles(values, "value", 1, "(events,)");
  if (w.size() == 0) throw py::value_error("reward: is empty, expected at least 1 event");
  for (const auto* array : {&r, &q, &v}) {
    if (array->size() != w.size()) throw py::value_error("arrays: have different lengths");
  }
  std::vector<eval::ScoredEvent> events;
  for (std::size_t i = 0; i < Values(w).size(); ++i) {
    const eval::ScoredEvent event{.weight = Values(w)[i],
                                  .reward = Values(r)[i],
                                  .predicted = Values(q)[i],
                                  .value = Values(v)[i],
                                  // Where the log is uniform and the target is certain.
                                  .accepted = Values(w)[i] > 0};
    const bool finite = std::isfinite(event.weight + event.reward + event.predicted + event.value);
    if (!finite || event.weight < 0) {
      throw py::value_error(fmt::format(
          "event {}: weight {}, reward {}, predicted {}, value {}, expected finite numbers and a "
          "weight of at least 0",
          i, event.weight, event.reward, event.predicted, event.value));
    }
    events.push_back(event);
  }
  for (const eval::Estimator estimator : eval::kOffPolicyEstimators) {
    if (eval::EstimatorName(estimator) != name) continue;
    const py::gil_scoped_release release;
    const std::optional<double> value = eval::EstimateValue(estimator, events);
    const auto bootstrap =
        eval::Bootstrap({&estimator, 1}, events,
                        {.resamples = resamples, .confidence = confidence, .seed = seed})
            .front();
    const double effective = eval::EffectiveSampleSize(events);
    const py::gil_scoped_acquire acquire;
    py::dict result("estimator"_a = name, "value"_a = value, "effective_sample_size"_a = effective,
                    "low"_a = py::none(), "high"_a = py::none(), "standard_error"_a = py::none());
    if (bootstrap) {
      result["low"] = bootstrap->interval.low;
      result["high"] = bootstrap->interval.high;
      result["standard_error"] = bootstrap->standard_error;
    }
    return result;
  }
  throw py::value_error(
      fmt::format("estimator: is '{}', expected one of replay, ips, snips, dr, dm", name));
}

}  // namespace

void BindEvaluation(py::module_& module) {
  py::class_<eval::LoggedData>(module, "LoggedData")
      .def_static("read", &ReadFiles)
      .def_static("from_arrays", &FromArrays)
      .def("arrays", &LogArrays)
      .def("__len__", [](const eval::LoggedData& data) { return data.log.size(); })
      .def_property_readonly("dim", [](const eval::LoggedData& data) { return data.log.dim(); })
      .def_property_readonly("skipped",
                             [](const eval::LoggedData& data) { return data.summary.skipped; })
      .def("sort_by_time", [](eval::LoggedData& data) { data.log.SortByTime(); });
  module.def("evaluate", &EvaluateLog);
  module.def("estimate", &EstimateArrays);
}

}  // namespace codband::python
