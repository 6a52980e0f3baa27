#include "codband/replay/top_tags.h"

#include <gtest/gtest.h>

namespace codband::replay {
namespace {

TEST(TopTagsTest, BestItemsShareTheirWeightAmongTheirTags) {
  RecordedStream stream;
  stream.dim = 2;
  stream.features = {1, 0, 0, 1, 1, 1};
  const ItemTags tags{.names = {"pop", "rock", "zydeco", "folk"},
                      .of_item = {{{.tag = 0, .count = 1000}},
                                  {{.tag = 1, .count = 3}, {.tag = 0, .count = 1}},
                                  {{.tag = 2, .count = 2}, {.tag = 3, .count = 2}}}};
  // The items' scores: 0, 1, 1.
  const std::vector<double> theta = {0, 1};
  const auto best = TagsOfBestItems(stream, tags, theta, 2, 10);
  ASSERT_EQ(best.size(), 4U);
  EXPECT_EQ(best[0].tag, "rock");
  EXPECT_DOUBLE_EQ(best[0].weight, 0.75);
  EXPECT_EQ(best[1].tag, "folk");
  EXPECT_EQ(best[2].tag, "zydeco");
  EXPECT_DOUBLE_EQ(best[2].weight, 0.5);
  EXPECT_EQ(best[3].tag, "pop");
  EXPECT_DOUBLE_EQ(best[3].weight, 0.25);
  // Of equal scores the first in the file, and no more tags than asked for.
  const auto one = TagsOfBestItems(stream, tags, theta, 1, 1);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].tag, "rock");
  const auto all = TagsOfBestItems(stream, tags, theta, 100, 10);
  EXPECT_EQ(all[0].tag, "pop");
  EXPECT_DOUBLE_EQ(all[0].weight, 1.25);
}

}  // namespace
}  // namespace codband::replay
