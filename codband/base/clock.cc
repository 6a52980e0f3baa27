#include "codband/base/clock.h"

#include <ctime>
#include <fstream>

namespace codband {
namespace {

double Read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t ReadMillis(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

double ThreadCpuSeconds() { return Read(CLOCK_THREAD_CPUTIME_ID); }
double WallSeconds() { return Read(CLOCK_MONOTONIC); }

std::int64_t BootMillis() { return ReadMillis(CLOCK_BOOTTIME); }
std::int64_t UnixMillis() { return ReadMillis(CLOCK_REALTIME); }

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace codband
