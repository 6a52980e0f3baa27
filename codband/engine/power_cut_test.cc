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

TEST(PowerCutTest, NorIsAColumn) {
  PowerCuts cuts(2, 4, true);
  for (int i = 0; i < 15 && cuts.Once(); ++i) continue;
  fmt::print("{}\n", cuts.Summary());
}

}  // namespace
}  // namespace codband::engine
