#pragma once

#include <cstdint>

namespace codband {

// Seconds of processor time used by the calling thread: a difference of two readings is not
// disturbed by other processes on the machine.
double ThreadCpuSeconds();

// Seconds of a clock that never goes back.
double WallSeconds();

// Milliseconds since 1970 by the system's clock, which may be set.
std::int64_t UnixMillis();

}  // namespace codband
