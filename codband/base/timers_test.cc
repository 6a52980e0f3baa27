#include "codband/base/timers.h"

#include <gtest/gtest.h>

#include <string>

namespace codband {
namespace {

TEST(VirtualTimeTest, RunsTasksByTimeThenByTheOrderInWhichTheyWereGiven) {
  VirtualTime time;
  std::string ran;
  time.After(5, [&] { ran += 'c'; });
  time.After(1, [&] {
    ran += 'a';
    time.After(0, [&] { ran += 'b'; });
  });
  time.After(5, [&] { ran += 'd'; });
  time.RunFor(4);
  EXPECT_EQ(ran, "ab");
  EXPECT_EQ(time.now_ms(), 4);
  while (time.RunOne()) {
  }
  EXPECT_EQ(ran, "abcd");
  EXPECT_EQ(time.now_ms(), 5);
}

}  // namespace
}  // namespace codband
