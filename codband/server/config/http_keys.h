#pragma once

#include <vector>

#include "codband/server/config/config_keys.h"

namespace codband::server {

// The part of ConfigKeys() that says whom the server listens to and how: the sections
// [http] and [tls].
std::vector<ConfigKey> HttpKeys();

}  // namespace codband::server
