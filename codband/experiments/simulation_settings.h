#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/sim/synthetic.h"

namespace codband::experiments {

// One setting of a simulated population. The list of them is the only place that knows their names,
// how they are read and how they are written. JSON and identities call a setting by its flag
// without the dashes. A new member of SyntheticOptions does not compile until it is in the list.
struct SimulationSetting {
  const char* flag;
  const char* value;  // as --help calls it; empty: a switch, which has no value
  const char* help;

  // Whether commands and identities name it even if it has its default: the paper's settings do,
  // those that go beyond the paper do not.
  bool always_named;

  Status (*parse)(std::string_view flag, std::string_view text, sim::SyntheticOptions& options);
  std::string (*text)(const sim::SyntheticOptions& options);  // what `parse` reads
  nlohmann::ordered_json (*json)(const sim::SyntheticOptions& options);

  // Whether it has an effect in this population; null in JSON if not. No function: always.
  bool (*applies)(const sim::SyntheticOptions& options) = nullptr;

  std::string_view name() const { return std::string_view(flag).substr(2); }
};

// In the order in which they are read and written: --setting first, as it decides the defaults of
// the others.
std::span<const SimulationSetting> SimulationSettings();

// The population that the texts ask for, one text for each setting, none where it was not given.
// kInvalidArgument names the flag, the value and what was expected.
Result<sim::SyntheticOptions> ParseSimulation(std::span<const std::optional<std::string>> texts);

// All settings: {"setting": 2, "users": 100, …}.
nlohmann::ordered_json SimulationJson(const sim::SyntheticOptions& options);

// The flags that ask for this population: "--setting 2 --users 100 …".
std::string SimulationFlags(const sim::SyntheticOptions& options);

// A text that differs between any two different populations: "setting 2 users 100 …".
std::string SimulationIdentity(const sim::SyntheticOptions& options);

}  // namespace codband::experiments
