#pragma once

#include <string_view>

namespace codband::server {

// codband/server/api/openapi.json, put into the program by the build.
extern const std::string_view kOpenApiJson;

}  // namespace codband::server
