#include "codband/store/simulated_log.h"

#include <gtest/gtest.h>

#include <optional>

#include "codband/store/partition_log_conformance.h"

namespace codband::store {
namespace {

class SimulatedBackend {
 public:
  explicit SimulatedBackend(Partition partitions) : record_(partitions, time_) {}
  std::unique_ptr<PartitionLog> Connect() {
    return std::make_unique<SimulatedLog>(record_, time_, EventKey{.seed = 1, .event = ++logs_});
  }
  void Sleep(std::int64_t ms) { time_.RunFor(ms); }
  void WaitFor(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) time_.RunOne();
  }

 private:
  VirtualTime time_;
  SimulatedRecord record_;
  std::uint64_t logs_ = 0;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, PartitionLogConformance, SimulatedBackend);

class SimulatedLogTest : public testing::Test {
 protected:
  Claim Acquire(SimulatedLog& log, std::int64_t lease_ms = 1000) {
    std::optional<Claim> claim;
    log.Acquire(0, "node", lease_ms, [&](const Result<PartitionState>& state) {
      if (state.ok()) claim = state.value().claim();
    });
    time_.RunFor(SimulatedLog::kTimeoutMs);
    return claim.value_or(Claim{});
  }

  VirtualTime time_;
  SimulatedRecord record_{1, time_};
};

// Whatever is lost and however late a message arrives, an append is answered with what became of
// it.
TEST_F(SimulatedLogTest, AnAppendIsNeverPerhaps) {
  int appended = 0, refused = 0, fenced = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedRecord record(1, time_);
    SimulatedLog log(record, time_, {.seed = seed, .event = 0});
    SimulatedLog other(record, time_, {.seed = seed, .event = 1});
    Claim claim;
    log.Acquire(0, "a", 2000,
                [&](const Result<PartitionState>& state) { claim = state.value().claim(); });
    time_.RunFor(10);
    log.faults = {.most_delay_ms = 20, .slow = 0.2, .most_slow_ms = 1500, .lost = 0.2};
    std::vector<std::string> told;  // what the log said is in it
    std::uint64_t next = 1;
    bool open = true;
    std::function<void()> append = [&] {
      const std::string frame = "frame " + std::to_string(appended + refused);
      log.Append(claim, next, frame, [&, frame](const Status& status) {
        if (status.ok()) {
          told.push_back(frame);
          ++next;
          ++appended;
        } else if (IsFenced(status)) {
          open = false;
          ++fenced;
        } else {
          ASSERT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
          ++refused;
        }
        if (open) append();
      });
    };
    append();
    time_.RunFor(10'000);
    other.Acquire(0, "b", 1'000'000, [](const auto&) {});
    time_.RunFor(60'000);
    EXPECT_FALSE(open);
    std::vector<std::string> history;
    for (const LogFrame& frame : record.History(0)) history.push_back(frame.bytes);
    ASSERT_EQ(history, told) << "seed " << seed;
  }
  EXPECT_GT(appended, 1000);
  EXPECT_GT(refused, 100);
  EXPECT_EQ(fenced, 300);
}

TEST_F(SimulatedLogTest, AnAppendWaitsWhileTheRecordIsCutOff) {
  SimulatedLog log(record_, time_, {.seed = 1, .event = 0});
  const Claim claim = Acquire(log);
  std::optional<Status> answer;
  log.faults.cut = true;
  log.Append(claim, 1, "x", [&](const Status& status) { answer = status; });
  time_.RunFor(100'000);
  EXPECT_FALSE(answer.has_value());
  log.faults.cut = false;
  time_.RunFor(2000);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), StatusCode::kUnavailable);
}

TEST_F(SimulatedLogTest, AClosedLogAnswersThatItDoesNotKnow) {
  std::optional<Status> answer;
  {
    SimulatedLog log(record_, time_, {.seed = 1, .event = 0});
    log.Append(Acquire(log), 1, "x", [&](const Status& status) { answer = status; });
  }
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), StatusCode::kIoError);
  time_.RunFor(2000);
  EXPECT_EQ(record_.History(0).size(), 1U);  // it was on the way
}

TEST_F(SimulatedLogTest, ACrashedNodeIsToldNothingAndItsMessagesArrive) {
  SimulatedLog log(record_, time_, {.seed = 1, .event = 0});
  bool told = false;
  log.Append(Acquire(log), 1, "x", [&](const Status&) { told = true; });
  log.Crash();
  time_.RunFor(2000);
  EXPECT_FALSE(told);
  EXPECT_EQ(record_.History(0).size(), 1U);
}

TEST_F(SimulatedLogTest, LeasesFollowTheClockOfTheRecord) {
  SimulatedLog log(record_, time_, {.seed = 1, .event = 0});
  const Claim first = Acquire(log, 3'600'000);
  record_.JumpClock(3'600'000);
  const Claim second = Acquire(log, 1000);
  EXPECT_GT(second.epoch, first.epoch);
  record_.JumpClock(-3'600'000);
  time_.RunFor(5000);
  EXPECT_EQ(Acquire(log, 1000), Claim{});  // it is held for an hour more: slow, but safe
}

}  // namespace
}  // namespace codband::store
