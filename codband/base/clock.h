#pragma once

namespace codband {

// Seconds of processor time used by the calling thread: a difference of two readings is not
// disturbed by other processes on the machine.
double ThreadCpuSeconds();

// Seconds of a clock that never goes back.
double WallSeconds();

}  // namespace codband
