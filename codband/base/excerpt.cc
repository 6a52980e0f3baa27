#include "codband/base/excerpt.h"

#include <fmt/format.h>

namespace codband {

std::string Excerpt(std::string_view text) {
  std::string excerpt;
  for (const char c : text.substr(0, 40)) {
    if (c >= ' ' && c <= '~') {
      excerpt += c;
    } else {
      excerpt += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > 40 ? excerpt + "..." : excerpt;
}

}  // namespace codband
