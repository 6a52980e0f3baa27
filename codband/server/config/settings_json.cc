#include "codband/server/config/settings_json.h"

#include <nlohmann/json.hpp>
#include <variant>

#include "codband/server/api/json_text.h"
#include "codband/server/config/config_keys.h"

namespace codband::server {

std::string SettingsJson(const ServeConfig& config) {
  using Json = nlohmann::ordered_json;
  const ServeConfig defaults;
  const auto to_json = [](const ConfigValue& value) {
    return std::visit([](const auto& each) { return Json(each); }, value);
  };
  Json settings = Json::array();
  for (const ConfigKey& key : ConfigKeys()) {
    const auto origin = config.origins.find(key.FullName());
    settings.push_back({{"name", key.FullName()},
                        {"value", to_json(key.get(config))},
                        {"default", to_json(key.get(defaults))},
                        {"origin", origin == config.origins.end() ? "default" : origin->second},
                        {"allowed", key.AllowedText()},
                        {"help", key.help}});
  }
  return JsonText({{"settings", std::move(settings)}});
}

}  // namespace codband::server
