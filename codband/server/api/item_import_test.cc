#include "codband/server/api/item_import.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace codband::server {
namespace {

const std::string kLines =
    "{\"id\":\"a\",\"features\":[1,2]}\r\n\n  \n{\"id\":\"b\",\"features\":{\"x\":1}}\n"
    "{\"id\":\"c\",\"features\":[3,4],\"tags\":[\"t\"]}";

TEST(ItemImportTest, PiecesOfAnySizeGiveTheSameItems) {
  JsonParser parser;
  ItemImport whole(parser, 2, 1000);
  ASSERT_TRUE(whole.Feed(kLines).ok());
  ASSERT_TRUE(whole.Finish().ok());
  const std::vector<engine::Item> expected = whole.Take();
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(expected[2], (engine::Item{"c", {3, 4}, {}, {"t"}}));
  EXPECT_EQ(whole.line(), 5u);
  EXPECT_EQ(whole.bytes(), kLines.size());
  for (std::size_t size = 1; size < kLines.size(); ++size) {
    ItemImport import(parser, 2, 1000);
    for (std::size_t i = 0; i < kLines.size(); i += size) {
      ASSERT_TRUE(import.Feed(std::string_view(kLines).substr(i, size)).ok());
    }
    ASSERT_TRUE(import.Finish().ok());
    EXPECT_EQ(import.Take(), expected) << size;
  }
}

TEST(ItemImportTest, AnErrorSaysWhichLine) {
  JsonParser parser;
  ItemImport import(parser, 2, 1000);
  const Status status = import.Feed("{\"id\":\"a\",\"features\":[1,2]}\n\n{\"id\":\"b\"}\n");
  EXPECT_EQ(status.message(), "features: is missing");
  EXPECT_EQ(import.line(), 3u);
}

TEST(ItemImportTest, ALastLineWithoutABreakCounts) {
  JsonParser parser;
  ItemImport import(parser, 2, 1000);
  ASSERT_TRUE(import.Feed("{\"id\":\"a\"").ok());
  EXPECT_FALSE(import.Finish().ok());
  EXPECT_EQ(import.line(), 1u);
}

TEST(ItemImportTest, AnEndlessLineIsRefusedEarly) {
  JsonParser parser;
  ItemImport import(parser, 2, 100);
  Status status;
  std::size_t fed = 0;
  while (status.ok() && fed < 1000) {
    status = import.Feed("          ");
    fed += 10;
  }
  EXPECT_EQ(status.message(), "body: has a line of more than 100 bytes");
  EXPECT_EQ(fed, 110u);
}

}  // namespace
}  // namespace codband::server
