#include "codband/sim/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace codband::sim {
namespace {

TEST(RunJobsTest, MostExpensiveJobsStartFirstAndEqualOnesInTheirOrder) {
  std::vector<std::size_t> started;
  const std::vector<double> costs = {1, 5, 1, 7, 5};
  ASSERT_TRUE(RunJobs(costs, {}, [&](std::size_t job, const ProgressFunction&) {
                started.push_back(job);
                return Status();
              }).ok());
  EXPECT_EQ(started, (std::vector<std::size_t>{3, 1, 4, 0, 2}));
}

TEST(RunJobsTest, EveryJobRunsOnceOnSeveralThreads) {
  std::mutex mutex;
  std::vector<std::size_t> done;
  ASSERT_TRUE(RunJobs(std::vector<double>(50, 1), {.threads = 4},
                      [&](std::size_t job, const ProgressFunction&) {
                        const std::lock_guard lock(mutex);
                        done.push_back(job);
                        return Status();
                      })
                  .ok());
  std::ranges::sort(done);
  ASSERT_EQ(done.size(), 50U);
  for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i);
}

TEST(RunJobsTest, ProgressIsWeightedByCost) {
  std::vector<double> shares;
  const std::vector<double> costs = {1, 3};
  ASSERT_TRUE(RunJobs(costs, {.progress = [&](double share) { shares.push_back(share); }},
                      [&](std::size_t, const ProgressFunction& progress) {
                        progress(0.5);
                        progress(0.5);
                        return Status();
                      })
                  .ok());
  EXPECT_EQ(shares, (std::vector<double>{0.375, 0.375, 0.125, 0.125}));
}

TEST(RunJobsTest, FirstFailureIsReturnedAndNoFurtherJobStarts) {
  std::size_t started = 0;
  const Status status = RunJobs(std::vector<double>(5, 1), {},
                                [&](std::size_t job, const ProgressFunction&) -> Status {
                                  ++started;
                                  if (job == 0) return {};
                                  return Status::IoError("job " + std::to_string(job));
                                });
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_EQ(status.message(), "job 1");
  EXPECT_EQ(started, 2U);
}

TEST(RunJobsTest, NoJobsAreNoFailure) {
  EXPECT_TRUE(RunJobs({}, {.threads = 3}, [](std::size_t, const ProgressFunction&) {
                return Status::IoError("never");
              }).ok());
}

}  // namespace
}  // namespace codband::sim
