#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/config/config.h"

namespace codband::server {

enum class ConfigKind {
  kText,
  kSwitch,      // true or false
  kWhole,       // a whole number in [min, max]
  kReal,        // a number in [min, max]
  kRealOrWord,  // the same, or one of `words`
  kWord,        // one of `words`
};

using ConfigValue = std::variant<bool, std::int64_t, double, std::string>;

// One setting. The table of these is the one place that lists settings.
struct ConfigKey {
  std::string_view section;
  std::string_view name;
  ConfigKind kind = ConfigKind::kText;
  double min = 0;
  double max = 0;
  std::vector<std::string_view> words = {};
  std::string_view expected = {};  // of a text: its format
  std::string_view help;           // one or more lines
  ConfigValue (*get)(const ServeConfig& config);
  // `value` has the right kind and range. An error without a message means: not as `expected`.
  Status (*set)(ServeConfig& config, const ConfigValue& value);

  std::string FullName() const;      // "server.listen"
  std::string VariableName() const;  // "CODBAND_SERVER_LISTEN"
  std::string AllowedText() const;   // "a whole number from 1 to 256"
};

// A part of the table, in a file of its own.
std::vector<ConfigKey> SecurityKeys();
std::vector<ConfigKey> FeatureKeys();
std::vector<ConfigKey> LogKeys();

// In the order in which they are printed; keys of a section are adjacent.
const std::vector<ConfigKey>& ConfigKeys();

}  // namespace codband::server
