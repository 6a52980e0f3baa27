#include "codband/base/clock.h"

#include <ctime>

namespace codband {
namespace {

double Read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double ThreadCpuSeconds() { return Read(CLOCK_THREAD_CPUTIME_ID); }
double WallSeconds() { return Read(CLOCK_MONOTONIC); }

std::int64_t UnixMillis() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace codband
