#pragma once

#include <string_view>

namespace codband {

// The version of the program; set by the build.
inline constexpr std::string_view kVersion = CODBAND_VERSION;

}  // namespace codband
