#include "codband/features/feature_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace codband::features {
namespace {

TEST(FeatureGroupsTest, ColumnsOfOneNameAreAGroup) {
  ColumnSpace space;
  const ColumnLimits limits{.columns = 10};
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"genre=jazz", "price", "genre=rock", "emb[0]", "emb[1]"}) {
    space.Admit(Side::kItem, name, limits, added);
  }
  space.Admit(Side::kContext, "genre=jazz", limits, added);
  space.AdmitCrossing(0, 5, limits, added);
  EXPECT_EQ(GroupsOf(space), (std::vector<std::uint32_t>{0, 1, 0, 2, 2, 3, 4}));
  // They stay what they were.
  space.Admit(Side::kItem, "genre=pop", limits, added);
  space.AdmitCrossing(1, 5, limits, added);
  for (int i = 0; i < 3; ++i) space.Admit(Side::kItem, "later=" + std::to_string(i), limits, added);
  std::vector<std::uint32_t> expected = {0, 1, 0, 2, 2, 3, 4, 0};
  const std::vector<std::uint32_t> groups = GroupsOf(space);
  ASSERT_GT(groups.size(), 12U);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), groups.begin()));
  EXPECT_EQ(groups.back(), groups[groups.size() - 2]);  // shared
}

}  // namespace
}  // namespace codband::features
