#pragma once

#include <cstdint>
#include <string>

namespace codband {

// CPU time of the calling thread in seconds: differences are not affected by other processes on
// the machine.
double ThreadCpuSeconds();

// Seconds of a monotonic clock.
double WallSeconds();

// Milliseconds since this machine was started, those in which it was suspended included. Nobody can
// set this clock.
std::int64_t BootMillis();

// Names the time since this machine was started; another one after each start. Empty if unknown.
std::string BootId();

// Milliseconds since 1970 by the system clock, which can be adjusted.
std::int64_t UnixMillis();

}  // namespace codband
