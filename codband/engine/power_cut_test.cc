#include <gtest/gtest.h>

#include "codband/engine/power_cuts.h"

namespace codband::engine {
namespace {

TEST(PowerCutTest, NothingAcknowledgedIsLostOrDoubled) {
  PowerCuts cuts(1, 4);
  for (int i = 0; i < 25 && cuts.Once(); ++i) continue;
  EXPECT_GT(cuts.failures(), 0U);
  fmt::print("{}\n", cuts.Summary());
}

}  // namespace
}  // namespace codband::engine
