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

TEST(ParallelForTest, AnExceptionStopsTheRestAndComesOut) {
  std::atomic<int> ran = 0;
  EXPECT_THROW(ParallelFor(1000, 2,
                           [&](std::size_t i) {
                             ++ran;
                             if (i == 3) throw std::runtime_error("three");
                           }),
               std::runtime_error);
  EXPECT_LT(ran, 1000);
}

}  // namespace
}  // namespace codband
