#include "codband/base/check.h"

#include <fmt/format.h>

#include <string_view>

namespace codband {

void ThrowInternalError(const char* file, int line, const char* condition) {
  const std::string_view path(file);
  const auto slash = path.find_last_of('/');
  throw InternalError(fmt::format("{}:{}: invariant broken: {}",
                                  slash == path.npos ? path : path.substr(slash + 1), line,
                                  condition));
}

}  // namespace codband
