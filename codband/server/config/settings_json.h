#pragma once

#include <string>

#include "codband/server/config/config.h"

namespace codband::server {

// Every setting in force, with its default, what is allowed, its meaning and where it was set, for
// GET /v1/settings. No key is in it.
std::string SettingsJson(const ServeConfig& config);

}  // namespace codband::server
