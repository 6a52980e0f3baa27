#include "codband/policy/codband/restore_point.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(RestorePointTest, HoldsUntilSomebodyElseBringsSomething) {
  RestorePoint point;
  EXPECT_FALSE(point.Take(1));
  point.Set(1, "before");
  point.Observe(1);
  EXPECT_EQ(point.Take(1), "before");
  EXPECT_FALSE(point.Take(1));

  point.Set(1, "before");
  point.Observe(2);
  EXPECT_FALSE(point.Take(1));

  point.Set(1, "before 1");
  point.Set(2, "before 2");  // a newer user
  EXPECT_FALSE(point.Take(1));
}

TEST(RestorePointTest, SaveLoadIsExact) {
  for (const bool set : {false, true}) {
    RestorePoint point;
    if (set) point.Set(7, "state");
    ByteWriter out;
    point.Save(out);
    ByteReader in(out.bytes());
    RestorePoint restored;
    restored.Set(8, "other");
    restored.Load(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    EXPECT_EQ(restored.Take(7), set ? std::optional<std::string>("state") : std::nullopt);
  }
}

}  // namespace
}  // namespace codband
