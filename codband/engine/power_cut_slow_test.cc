#include <gtest/gtest.h>

#include "codband/engine/power_cuts.h"

namespace codband::engine {
namespace {

TEST(PowerCutSlowTest, AThousandCutsLoseNothingAndDoubleNothing) {
  PowerCuts cuts(2, 8);
  for (int i = 0; i < 1000 && cuts.Once(); ++i) continue;
  EXPECT_GT(cuts.failures(), 100U);
  EXPECT_GT(cuts.refused(), 100U);
  fmt::print("{}\n", cuts.Summary());
}

}  // namespace
}  // namespace codband::engine
