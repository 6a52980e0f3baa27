#pragma once

#include <string_view>

namespace codband {

// codband/server/openapi.json, put into the program by the build.
extern const std::string_view kOpenApiJson;

}  // namespace codband
