#pragma once

#include <cstddef>
#include <functional>

namespace codband {

// Calls job(i) for every i < count on up to `threads` threads, started in ascending order, and
// returns when all are done. If a job throws, no further jobs are started, and the first exception
// is rethrown here.
void ParallelFor(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t)>& job);

}  // namespace codband
