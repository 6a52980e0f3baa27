#include "codband/report/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/text.h"
#include "codband/report/test_support.h"

namespace codband::report {
namespace {

// Both ends of a pipe; the reading end never blocks.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(fds_.data(), O_NONBLOCK), 0); }
  ~Pipe() {
    close(fds_[0]);
    close(fds_[1]);
  }
  int writer() const { return fds_[1]; }
  std::string Read() {
    std::string out(65536, '\0');
    const ssize_t count = read(fds_[0], out.data(), out.size());
    out.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return out;
  }

 private:
  std::array<int, 2> fds_{};
};

TEST(ProgressTest, LineShowsAllParts) {
  EXPECT_EQ(FormatProgress({.done = 400, .total = 1000, .elapsed_s = 65, .label = "linucb"}, 100),
            "[########------------]  40%  400/1,000  1:05 elapsed, 1:38 left  linucb");
  EXPECT_EQ(FormatProgress({.done = 1, .total = 1, .elapsed_s = 3725}, 100),
            "[####################] 100%  1/1  1:02:05 elapsed, 0:00 left");
}

TEST(ProgressTest, TimeLeftIsUnknownBeforeAnyWork) {
  EXPECT_EQ(FormatProgress({.done = 0, .total = 10, .elapsed_s = 2}, 100),
            "[--------------------]   0%  0/10  0:02 elapsed, – left");
}

TEST(ProgressTest, FractionsCountAndHundredIsOnlyShownAtTheEnd) {
  EXPECT_EQ(FormatProgress({.done = 1.5, .total = 2, .elapsed_s = 30}, 100),
            "[###############-----]  75%  1/2  0:30 elapsed, 0:10 left");
  EXPECT_NE(FormatProgress({.done = 9.999, .total = 10}, 100).find(" 99%  9/10"),
            std::string::npos);
  EXPECT_NE(FormatProgress({.done = 12, .total = 10}, 100).find("100%  10/10"), std::string::npos);
}

TEST(ProgressTest, UnknownTotalShowsWorkAndTime) {
  EXPECT_EQ(FormatProgress({.done = 1234, .total = 0, .elapsed_s = 61}, 100),
            "1,234 done  1:01 elapsed");
}

TEST(ProgressTest, LineNeverExceedsTheColumnsNorBreaks) {
  const ProgressState state{
      .done = 3, .total = 10, .elapsed_s = 5, .label = "a\nlabel\x1B[2J with σ and more words"};
  for (int columns = 0; columns < 120; ++columns) {
    const std::string line = FormatProgress(state, columns);
    EXPECT_LE(DisplayWidth(line), columns);
    EXPECT_EQ(line.find_first_of("\n\r\x1B"), std::string::npos);
  }
  EXPECT_EQ(FormatProgress(state, 30), "[######--------------]  30%");
}

TEST(ProgressTest, SilentWhenNotATerminal) {
  Pipe pipe;
  {
    Progress progress({.total = 10, .fd = pipe.writer()});
    progress.SetLabel("label");
    progress.Advance(5);
    progress.Set(9);
  }
  EXPECT_EQ(pipe.Read(), "");
}

TEST(ProgressTest, RedrawsAtMostTenTimesASecondAndCleansUp) {
  Pipe pipe;
  double now = 100;
  Progress progress(
      {.total = 100, .fd = pipe.writer(), .enabled = true, .clock = [&now] { return now; }});
  for (int i = 0; i < 100; ++i) {
    progress.Advance();
    now += 0.01;
  }
  const std::string drawn = pipe.Read();
  EXPECT_GE(Count(drawn, "\r["), 9u);
  EXPECT_LE(Count(drawn, "\r["), 11u);
  EXPECT_EQ(drawn.find('\n'), std::string::npos);
  progress.Finish();
  const std::string cleaned = pipe.Read();
  ASSERT_GE(cleaned.size(), 3u);
  EXPECT_EQ(cleaned, "\r" + std::string(cleaned.size() - 2, ' ') + "\r");
  progress.Finish();
  now += 10;
  progress.Advance();
  EXPECT_EQ(pipe.Read(), "");
}

TEST(ProgressTest, ShorterLineClearsTheLongerOne) {
  Pipe pipe;
  double now = 0;
  Progress progress(
      {.total = 100, .fd = pipe.writer(), .enabled = true, .clock = [&now] { return now; }});
  progress.SetLabel("a long label");
  const std::string first = pipe.Read();
  now = 1;
  progress.SetLabel("");
  const std::string second = pipe.Read();
  EXPECT_EQ(DisplayWidth(first), DisplayWidth(second));
  EXPECT_TRUE(second.ends_with("  "));
}

TEST(ProgressTest, AddsUpWorkOfManyThreads) {
  Pipe pipe;
  double now = 0;
  Progress progress(
      {.total = 4000, .fd = pipe.writer(), .enabled = true, .clock = [&now] { return now; }});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&progress] {
      for (int i = 0; i < 1000; ++i) progress.Advance(0.5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  pipe.Read();
  now = 1;
  progress.Advance(0);
  EXPECT_NE(pipe.Read().find("2,000/4,000"), std::string::npos);
}

}  // namespace
}  // namespace codband::report
