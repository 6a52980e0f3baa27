#include "codband/base/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace codband {
namespace {

using Strings = std::vector<std::string>;

Strings LinesOf(std::string_view text) {
  Strings lines;
  TextLines reader(text);
  while (reader.Next()) {
    lines.emplace_back(reader.line());
    EXPECT_EQ(reader.number(), lines.size());
  }
  return lines;
}

TEST(TextLinesTest, LineBreaksAreRemoved) {
  EXPECT_EQ(LinesOf(""), Strings{});
  EXPECT_EQ(LinesOf("\n"), Strings{""});
  EXPECT_EQ(LinesOf("a\r\n\nb"), (Strings{"a", "", "b"}));
  EXPECT_EQ(LinesOf("a\rb\r\r\nlast\r"), (Strings{"a\rb\r", "last"}));
}

TEST(TextLinesTest, LineAndLineBreakTogetherAreTheText) {
  const std::string text = "a\r\n\nb\rc\n\r\nd";
  std::string joined;
  TextLines reader(text);
  while (reader.Next()) joined.append(reader.line()).append(reader.line_break());
  EXPECT_EQ(joined, text);
}

TEST(TsvLinesTest, FieldsAreSeparatedByTabs) {
  TsvLines lines("f.tsv", "1\t\tx y\r\n\n");
  ASSERT_TRUE(lines.Next());
  EXPECT_EQ(lines.fields(), (std::vector<std::string_view>{"1", "", "x y"}));
  ASSERT_TRUE(lines.Next());
  EXPECT_EQ(lines.fields(), std::vector<std::string_view>{""});
  EXPECT_EQ(lines.number(), 2U);
  EXPECT_FALSE(lines.Next());
}

TEST(TsvLinesTest, MessagesNameFileLineFieldAndValue) {
  TsvLines lines("f.tsv", "a\nb\x01\n");
  ASSERT_TRUE(lines.Next());
  ASSERT_TRUE(lines.Next());
  EXPECT_EQ(lines.Wrong("no").message(), "f.tsv, line 2: no");
  EXPECT_EQ(lines.Wrong("user", lines.fields()[0], kWholeNumber).message(),
            "f.tsv, line 2: user = 'b\\x01', expected a whole number from 0 to 2^64 - 1");
  EXPECT_EQ(lines.Empty("rows").message(), "f.tsv is empty, expected rows");
}

}  // namespace
}  // namespace codband
