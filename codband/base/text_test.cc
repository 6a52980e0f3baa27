#include "codband/base/text.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(TextTest, TruncateKeepsWholeCharacters) {
  EXPECT_EQ(Truncate("σσσσ", 4), "σσσσ");
  EXPECT_EQ(Truncate("σσσσ", 3), "σσ…");
  EXPECT_EQ(Truncate("日本語", 4), "日…");
  EXPECT_EQ(Truncate("abc", 0), "");
}

TEST(TextTest, EscapeCoversMarkupControlsAndInvalidBytes) {
  EXPECT_EQ(EscapeXml("a<b> & \"c\" 'd' σ"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; σ");
  EXPECT_EQ(EscapeXml("a\x01"
                      "b\xFF"
                      "c\n"),
            "a\uFFFDb\uFFFDc\n");
}

TEST(TextTest, OneLineRemovesBreaksAndEscapeSequences) {
  EXPECT_EQ(OneLine("a\nb\x1B[31m\tσ"), "a b [31m σ");
}

TEST(TextTest, NumbersAreGroupedOrShort) {
  EXPECT_EQ(GroupThousands("1234567.25"), "1,234,567.25");
  EXPECT_EQ(GroupThousands("-100"), "-100");
  EXPECT_EQ(GroupThousands("-1000"), "-1,000");
  EXPECT_EQ(FormatNumber(20000), "20,000");
  EXPECT_EQ(FormatNumber(0.12346), "0.1235");
  EXPECT_EQ(FormatNumber(-0.0), "0");
  EXPECT_EQ(FormatNumber(-1234.4), "-1,234");
}

}  // namespace
}  // namespace codband
