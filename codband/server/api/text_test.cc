#include "codband/server/api/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace codband::server {
namespace {

std::string Time(std::int64_t time_ms) {
  std::string out;
  AppendTime(out, time_ms);
  return out;
}

TEST(ServerTextTest, TimesAreRfc3339) {
  EXPECT_EQ(Time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Time(1'562'500'800'123), "2019-07-07T12:00:00.123Z");
  EXPECT_EQ(Time(951'868'799'999), "2000-02-29T23:59:59.999Z");
  EXPECT_EQ(Time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(Time(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(Time(std::numeric_limits<std::int64_t>::min()), "0000-01-01T00:00:00.000Z");
}

TEST(ServerTextTest, HtmlIsEscaped) {
  std::string out;
  AppendHtml(out, "<a href='x'>\"&\"</a>\x01\xff é");
  EXPECT_EQ(out, "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;\xEF\xBF\xBD\xEF\xBF\xBD é");
}

TEST(ServerTextTest, SecretsAreEqualOrNot) {
  EXPECT_TRUE(SameSecret("key", "key"));
  EXPECT_FALSE(SameSecret("key", "kez"));
  EXPECT_FALSE(SameSecret("key", "ke"));
  EXPECT_FALSE(SameSecret("key", "keykey"));
  EXPECT_FALSE(SameSecret("key", ""));
  EXPECT_FALSE(SameSecret("", "key"));
}

TEST(ServerTextTest, Utf8) {
  EXPECT_TRUE(IsUtf8("aé日🎵"));
  for (const char* bad : {"\x80", "\xc1\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xff", "\xe2\x82", "a\xc3"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

}  // namespace
}  // namespace codband::server
