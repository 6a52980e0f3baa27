#pragma once

#include <cstdint>

namespace codband {

// CPU time of the calling thread in seconds: differences are not affected by other processes on
// the machine.
double ThreadCpuSeconds();

// Seconds of a monotonic clock.
double WallSeconds();

// Milliseconds since 1970 by the system clock, which can be adjusted.
std::int64_t UnixMillis();

}  // namespace codband
