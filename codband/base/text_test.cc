#include "codband/base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace codband {
namespace {

TEST(TextTest, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("σ"), 1);
  EXPECT_EQ(DisplayWidth("1 ± 2 – 3"), 9);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);  // e and a combining accent
  EXPECT_EQ(DisplayWidth("日本"), 4);
  EXPECT_EQ(DisplayWidth("\xFF\xFE"), 2);
}

TEST(TextTest, DecodeRejectsWhatIsNotUtf8) {
  for (const std::string bad : {"\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                "\xF4\x90\x80\x80", "\x80", "\xE2\x82"}) {
    std::size_t position = 0;
    EXPECT_EQ(DecodeUtf8(bad, &position), char32_t{0xFFFD});
    EXPECT_EQ(position, 1u);
  }
  std::size_t position = 0;
  EXPECT_EQ(DecodeUtf8("€", &position), char32_t{0x20AC});
  EXPECT_EQ(position, 3u);
}

TEST(TextTest, IsUtf8RejectsOverlongFormsSurrogatesAndTruncation) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("aé日🎵\uFFFD"));
  for (const char* bad : {"\x80", "\xc1\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xff", "\xe2\x82", "a\xc3"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(TextTest, TruncateKeepsWholeCharacters) {
  EXPECT_EQ(Truncate("σσσσ", 4), "σσσσ");
  EXPECT_EQ(Truncate("σσσσ", 3), "σσ…");
  EXPECT_EQ(Truncate("日本語", 4), "日…");
  EXPECT_EQ(Truncate("abc", 0), "");
  EXPECT_EQ(Truncate("abcdef", 4), "abc…");
}

TEST(TextTest, EscapeCoversMarkupControlsAndInvalidBytes) {
  EXPECT_EQ(EscapeXml("a<b> & \"c\" 'd' σ"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; σ");
  EXPECT_EQ(EscapeXml("a\x01"
                      "b\xFF"
                      "c\n"),
            "a\uFFFDb\uFFFDc\n");
  EXPECT_EQ(EscapeXml("<a href='x'>\"&\"</a>\x01\xff é\x7F\u0085"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;\uFFFD\uFFFD é\uFFFD\uFFFD");
}

TEST(TextTest, OneLineRemovesBreaksAndEscapeSequences) {
  EXPECT_EQ(OneLine("a\nb\x1B[31m\tσ"), "a b [31m σ");
  EXPECT_EQ(OneLine("a\x1B[1m\xFFé\n"), "a [1m\uFFFDé ");
}

TEST(TextTest, SplitKeepsEmptyParts) {
  std::vector<std::string_view> parts{"old"};
  SplitText("", ",", parts);
  EXPECT_EQ(parts, std::vector<std::string_view>{""});
  SplitText("a::b:c::", "::", parts);
  EXPECT_EQ(parts, (std::vector<std::string_view>{"a", "b:c", ""}));
}

TEST(TextTest, ListMayBeEmptyOrEndInAComma) {
  EXPECT_TRUE(SplitList("").empty());
  EXPECT_EQ(SplitList("a,b"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(SplitList("a,,b,"), (std::vector<std::string_view>{"a", "", "b"}));
}

TEST(TextTest, DepthOfJsonIsThatOfItsBrackets) {
  EXPECT_FALSE(NestsDeeper(R"({"a":[1,{"b":[]}]})", 4));
  EXPECT_TRUE(NestsDeeper(R"({"a":[1,{"b":[]}]})", 3));
  EXPECT_FALSE(NestsDeeper(R"(["[[[[\"[[[[",[],[],[]])", 2)) << "in a string";
  EXPECT_FALSE(NestsDeeper("]]]]", 0)) << "no JSON at all";
}

TEST(TextTest, EditDistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("rewrads", "rewards"), 1U);
  EXPECT_EQ(EditDistance("ca", "abc"), 3U);  // no letter is edited twice
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3U);
}

TEST(TextTest, NearestNameIsWhatAMistypedOneMayMean) {
  const std::vector<std::string> known = {"--users", "--rounds", "--seed", "--seeds"};
  EXPECT_EQ(NearestName("--userz", known), "--users");
  EXPECT_EQ(NearestName("--sed", known), "--seed");
  EXPECT_EQ(NearestName("--ro", known), "--rounds");
  EXPECT_EQ(NearestName("--population", known), std::nullopt);
  EXPECT_EQ(NearestName("--users", {}), std::nullopt);
}

TEST(TextTest, NumbersAreGroupedOrShort) {
  EXPECT_EQ(GroupThousands("1234567.25"), "1,234,567.25");
  EXPECT_EQ(GroupThousands("-100"), "-100");
  EXPECT_EQ(GroupThousands("-1000"), "-1,000");
  EXPECT_EQ(GroupThousands(999), "999");
  EXPECT_EQ(GroupThousands(18'446'744'073'709'551'615U), "18,446,744,073,709,551,615");
  EXPECT_EQ(FormatNumber(20000), "20,000");
  EXPECT_EQ(FormatNumber(0.12346), "0.1235");
  EXPECT_EQ(FormatNumber(-0.0), "0");
  EXPECT_EQ(FormatNumber(-1234.4), "-1,234");
}

}  // namespace
}  // namespace codband
