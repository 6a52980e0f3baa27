#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace codband::experiments {

// A value that may be missing, as JSON.
inline nlohmann::ordered_json OrNull(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace codband::experiments
