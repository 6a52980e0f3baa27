#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace codband::server {

// On one line; valid whatever its texts: invalid UTF-8 becomes U+FFFD.
inline std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace codband::server
