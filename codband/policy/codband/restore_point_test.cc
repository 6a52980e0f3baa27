#include "codband/policy/codband/restore_point.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(RestorePointTest, HoldsUntilSomebodyElseBringsSomething) {
  RestorePoint point;
  EXPECT_FALSE(point.Take(1));
  point.Set(1, 5, "before");
  point.Observe(1);
  const auto taken = point.Take(1);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->state, "before");
  EXPECT_EQ(taken->dim, 5U);
  EXPECT_FALSE(point.Take(1));

  point.Set(1, 5, "before");
  point.Observe(2);
  EXPECT_FALSE(point.Take(1));

  point.Set(1, 5, "before 1");
  point.Set(2, 5, "before 2");  // a newer user
  EXPECT_FALSE(point.Take(1));
}

TEST(RestorePointTest, OneFromBeforeFormatFiveHasTheFeaturesOfItsState) {
  ByteWriter out;
  out.U8(1);
  out.U64(7);
  out.String("state");
  ByteReader in(out.bytes());
  RestorePoint restored;
  restored.Load(in, 9);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(restored.Take(7)->dim, 9U);
}

TEST(RestorePointTest, SaveLoadIsExact) {
  for (const bool set : {false, true}) {
    RestorePoint point;
    if (set) point.Set(7, 5, "state");
    ByteWriter out;
    point.Save(out);
    ByteReader in(out.bytes());
    RestorePoint restored;
    restored.Set(8, 4, "other");
    restored.Load(in, 9);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    const auto taken = restored.Take(7);
    ASSERT_EQ(taken.has_value(), set);
    if (!set) continue;
    EXPECT_EQ(taken->state, "state");
    EXPECT_EQ(taken->dim, 5U);
  }
}

}  // namespace
}  // namespace codband
