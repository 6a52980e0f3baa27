#pragma once

#include <cstddef>
#include <functional>

namespace codband {

// Calls job(i) for every i < count, in that order of starting, on up to `threads` threads, and
// returns when all are done. If a job throws, no further ones are started, and the first exception
// is thrown here.
void ParallelFor(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t)>& job);

}  // namespace codband
