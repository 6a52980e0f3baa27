#pragma once

#include <string_view>

namespace codband {

// Of the program; set by the build from the project's version.
inline constexpr std::string_view kVersion = CODBAND_VERSION;

}  // namespace codband
