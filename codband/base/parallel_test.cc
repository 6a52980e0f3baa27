#include "codband/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace codband {
namespace {

TEST(ParallelForTest, EveryJobRunsOnce) {
  for (const std::size_t threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> runs(20);
    ParallelFor(20, threads, [&](std::size_t i) { ++runs[i]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

// On one thread what ran is known exactly. On two, how far the other one gets while the exception
// is under way is not; that it comes out is.
TEST(ParallelForTest, ExceptionStopsTheRestAndIsRethrown) {
  for (const std::size_t threads : {1, 2}) {
    std::atomic<int> ran = 0;
    EXPECT_THROW(ParallelFor(1000, threads,
                             [&](std::size_t i) {
                               ++ran;
                               if (i == 3) throw std::runtime_error("three");
                             }),
                 std::runtime_error);
    if (threads == 1) {
      EXPECT_EQ(ran, 4);
    }
  }
}

}  // namespace
}  // namespace codband
