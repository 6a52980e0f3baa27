// simulate, replay and stress: the runners, with policies and environments of Python's as well.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codband/experiments/replay_output.h"
#include "codband/experiments/result_figures.h"
#include "codband/experiments/simulation_settings.h"
#include "codband/experiments/stress.h"
#include "codband/replay/play.h"
#include "codband/replay/stream_format.h"
#include "codband/sim/runner.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/scripted.h"

namespace codband::python {
namespace {

using namespace py::literals;
using Factories = std::map<std::string, py::object>;
using Settings = std::map<std::string, std::string>;

// Lets Ctrl-C end a run: Python's signals are handled on its main thread.
void CheckSignals(double) {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// The settings by name as the command line has them, without its dashes.
Result<sim::SyntheticOptions> ReadSettings(const Settings& settings) {
  std::vector<std::optional<std::string>> texts;
  std::vector<std::string_view> names;
  for (const experiments::SimulationSetting& setting : experiments::SimulationSettings()) {
    const auto found = settings.find(std::string(setting.name()));
    texts.push_back(found == settings.end() ? std::nullopt : std::optional(found->second));
    names.push_back(setting.name());
  }
  for (const auto& [name, value] : settings) {
    if (std::ranges::find(names, name) == names.end()) return UnknownSetting(name, names);
  }
  auto options = experiments::ParseSimulation(texts);
  if (options.ok()) return options;
  return WithoutDashes(options.status());
}

sim::RunnerOptions ToRunner(const std::vector<std::string>& policies, const Factories& factories,
                            std::uint64_t seed, std::size_t seeds, std::size_t threads,
                            std::size_t checkpoints) {
  return {.policies = policies,
          .first_seed = seed,
          .seeds = seeds,
          .threads = threads,
          .checkpoints = checkpoints,
          .progress = CheckSignals,
          .make_policy = ScriptedFactory(factories)};
}

py::object Optional(const std::optional<double>& value) {
  if (!value) return py::none();
  return py::float_(*value);
}

py::dict RunDict(const sim::RunResult& run) {
  return py::dict(
      "regret"_a = CopyOf(std::span<const double>(run.regret)), "models"_a = run.models,
      "us_per_step"_a = run.us_per_step,
      "changes"_a =
          py::dict("true"_a = run.changes.true_changes, "detected"_a = run.changes.detected,
                   "missed"_a = run.changes.missed(), "false_alarms"_a = run.changes.false_alarms,
                   "stable_steps"_a = run.changes.stable_steps, "delays"_a = run.changes.delays),
      "cluster"_a = py::dict("precision"_a = Optional(run.clusters.precision()),
                             "recall"_a = Optional(run.clusters.recall())));
}

py::dict ComparisonDict(const sim::Comparison& comparison) {
  py::list policies;
  for (const sim::PolicyResults& policy : comparison.policies) {
    py::list runs;
    for (const sim::RunResult& run : policy.runs) runs.append(RunDict(run));
    policies.append(py::dict("name"_a = policy.spec, "runs"_a = runs));
  }
  return py::dict("rounds"_a = comparison.checkpoint_rounds, "policies"_a = policies);
}

py::dict Simulate(const Settings& settings, const std::vector<std::string>& policies,
                  const Factories& factories, std::uint64_t seed, std::size_t seeds,
                  std::size_t threads, std::size_t checkpoints) {
  const sim::SyntheticOptions options = ValueOf(ReadSettings(settings));
  const sim::RunnerOptions runner =
      ToRunner(policies, factories, seed, seeds, threads, checkpoints);
  auto comparison = [&] {
    const py::gil_scoped_release release;
    return sim::Compare([&](std::uint64_t s) { return sim::MakeSynthetic(options, s); }, runner);
  }();
  py::dict result = ComparisonDict(ValueOf(std::move(comparison)));
  result["environment"] = experiments::SimulationJson(options).dump();
  return result;
}

py::dict SimulateScripted(const py::object& environment, const std::vector<std::string>& policies,
                          const Factories& factories, std::uint64_t seed, std::size_t seeds,
                          std::size_t threads, std::size_t checkpoints) {
  const sim::RunnerOptions runner =
      ToRunner(policies, factories, seed, seeds, threads, checkpoints);
  const auto make = [&](std::uint64_t s) -> Result<std::unique_ptr<sim::Environment>> {
    const py::gil_scoped_acquire acquire;
    return MakeScriptedEnvironment(environment(s));
  };
  auto comparison = [&] {
    const py::gil_scoped_release release;
    return sim::Compare(make, runner);
  }();
  return ComparisonDict(ValueOf(std::move(comparison)));
}

std::string Replay(const std::string& directory, bool log, bool interleaved,
                   const std::vector<std::string>& policies, const Factories& factories,
                   std::uint64_t seed, std::size_t seeds, std::size_t threads,
                   std::size_t checkpoints) {
  const sim::RunnerOptions runner =
      ToRunner(policies, factories, seed, seeds, threads, checkpoints);
  auto text = [&]() -> Result<std::string> {
    const py::gil_scoped_release release;
    experiments::ReplayRecord record{.directory = directory,
                                     .order = interleaved ? "interleaved" : "recorded",
                                     .stream = {},
                                     .first_seed = seed};
    auto stream = log ? replay::ReadLog(directory) : replay::ReadStream(directory);
    if (!stream.ok()) return stream.status();
    record.stream = std::move(stream).value();
    if (interleaved) replay::InterleaveUsers(record.stream);
    auto comparison = replay::CompareOnStream(record.stream, runner);
    if (!comparison.ok()) return comparison.status();
    record.comparison = std::move(comparison).value();
    return experiments::ToJson(record);
  }();
  return ValueOf(std::move(text));
}

std::string Stress(const std::vector<std::string>& policies, const std::vector<std::string>& names,
                   bool quick, std::uint64_t seed, std::size_t seeds, std::size_t threads) {
  auto text = [&]() -> Result<std::string> {
    const py::gil_scoped_release release;
    experiments::StressRecord record{.policies = policies, .first_seed = seed, .seeds = seeds};
    CODBAND_RETURN_IF_ERROR(experiments::CheckStressPolicies(policies));
    std::vector<experiments::StressCell> cells = experiments::StressCells(quick);
    for (const std::string& name : names) {
      if (std::ranges::find(cells, name, &experiments::StressCell::name) == cells.end()) {
        return Status::InvalidArgument(fmt::format("cells: '{}' is unknown", name));
      }
    }
    std::erase_if(cells, [&](const experiments::StressCell& cell) {
      return !names.empty() && std::ranges::find(names, cell.name) == names.end();
    });
    CODBAND_RETURN_IF_ERROR(experiments::PlayStress(cells, threads, CheckSignals, record));
    return experiments::ToJson(record);
  }();
  if (!text.ok()) ThrowIfError(WithoutDashes(text.status()));
  return std::move(text).value();
}

}  // namespace

void BindRunner(py::module_& module) {
  py::class_<ScriptedRandom>(
      module, "Random",
      "The random draws of one event: the same whatever else is played, and on how many threads.")
      .def(
          "random", [](ScriptedRandom& r) { return r.stream().Uniform(); }, "Uniform in [0, 1).")
      .def(
          "integers",
          [](ScriptedRandom& r, std::int64_t high) {
            if (high < 1)
              throw py::value_error(fmt::format("high: is {}, expected at least 1", high));
            return r.stream().Below(static_cast<std::uint64_t>(high));
          },
          "high"_a, "A uniform whole number below `high`.")
      .def(
          "normal", [](ScriptedRandom& r) { return r.stream().Normal(); }, "Standard normal.")
      .def(
          "normals",
          [](ScriptedRandom& r, py::ssize_t size) {
            if (size < 0)
              throw py::value_error(fmt::format("size: is {}, expected at least 0", size));
            py::array_t<double> values(size);
            r.stream().FillNormal({values.mutable_data(), static_cast<std::size_t>(size)});
            return values;
          },
          "size"_a, "An array of standard normals.")
      .def_property_readonly("seed", [](const ScriptedRandom& r) { return r.key().seed; })
      .def_property_readonly("event", [](const ScriptedRandom& r) { return r.key().event; });

  module.def("policy_colour", &experiments::PolicyColour);
  module.def("simulate", &Simulate);
  module.def("simulate_scripted", &SimulateScripted);
  module.def("replay", &Replay);
  module.def("stress", &Stress);
}

}  // namespace codband::python
