#include "codband/server/http/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace codband::server {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t ConnectionsThatFit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::size_t>::max();
  }
  const auto all = static_cast<std::size_t>(limit.rlim_cur);
  return std::max<std::size_t>(1, all - std::min(kReservedDescriptors, all / 2));
}

}  // namespace codband::server
