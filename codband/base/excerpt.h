#pragma once

#include <string>
#include <string_view>

namespace codband {

// The first bytes of a text for a message: at most 40, other than printable ASCII as "\xNN".
std::string Excerpt(std::string_view text);

}  // namespace codband
