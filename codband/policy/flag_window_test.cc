#include "codband/policy/flag_window.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(FlagWindowTest, CountsTheLastOnesOnly) {
  FlagWindow flags(3);
  for (const bool flag : {true, true, false, false}) flags.Push(flag);
  EXPECT_EQ(flags.size(), 3U);
  EXPECT_EQ(flags.raised(), 1U);
  flags.Push(false);
  EXPECT_EQ(flags.raised(), 0U);
}

}  // namespace
}  // namespace codband
