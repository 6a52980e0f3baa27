// The settings of what is written to standard error.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "codband/server/config/config_keys.h"

namespace codband::server {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};

}  // namespace

std::vector<ConfigKey> LogKeys() {
  return {
      {.section = "log",
       .name = "format",
       .kind = ConfigKind::kWord,
       .words = {"text", "json"},
       .help =
           "Lines on standard error: text (time, level, cause, message), or one JSON object each.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.log.format == LogFormat::kJson ? "json" : "text";
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.log.format =
             std::get<std::string>(value) == "json" ? LogFormat::kJson : LogFormat::kText;
         return {};
       }},
      {.section = "log",
       .name = "level",
       .kind = ConfigKind::kWord,
       .words = {kLevels.begin(), kLevels.end()},
       .help = "Lines below this level are not written.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return std::string(kLevels[static_cast<std::size_t>(config.log.level)]);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         const auto* const found = std::ranges::find(kLevels, std::get<std::string>(value));
         config.log.level = static_cast<LogLevel>(found - kLevels.begin());
         return {};
       }},
  };
}

}  // namespace codband::server
