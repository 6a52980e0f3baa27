#include "codband/base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

namespace codband {
namespace {

TEST(TimeTest, TimesAreWrittenAsRfc3339) {
  EXPECT_EQ(FormatRfc3339(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatRfc3339(1'562'500'800'123), "2019-07-07T12:00:00.123Z");
  EXPECT_EQ(FormatRfc3339(951'868'799'999), "2000-02-29T23:59:59.999Z");
  EXPECT_EQ(FormatRfc3339(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatRfc3339(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatRfc3339(std::numeric_limits<std::int64_t>::min()), "0000-01-01T00:00:00.000Z");
}

TEST(TimeTest, ReadsTheNotationsOfLogs) {
  EXPECT_EQ(ParseTime("1970-01-01T00:00:01.25Z"), 1250);
  EXPECT_EQ(ParseTime("2021-07-29T10:00:00.9990000Z"), 1627552800999);
  EXPECT_EQ(ParseTime("2019-11-24 00:03:13.442536+00:00"), 1574553793442);
  EXPECT_EQ(ParseTime("1970-01-01T09:00:00+09:00"), 0);
  EXPECT_EQ(ParseTime("1970-01-01T00:00:00-0130"), 5400000);
  EXPECT_EQ(ParseTime("1970-01-02 00:00:00"), 86400000);
  EXPECT_EQ(ParseTime("1627552800"), 1627552800000);
  EXPECT_EQ(ParseTime("1627552800999"), 1627552800999);
  for (const char* bad : {"", "nan", "yesterday", "2021-13-01T00:00:00Z", "2021-01-01",
                          "2021-01-01T00:00:00X", "2021-01-01T00:00:00+1", "1e300"}) {
    EXPECT_FALSE(ParseTime(bad).has_value()) << bad;
  }
  EXPECT_FALSE(ParseRfc3339("1627552800").has_value());
}

TEST(TimeTest, EveryMillisecondOfASecondReadsBackExactly) {
  for (std::int64_t ms = 0; ms < 1000; ++ms) EXPECT_EQ(ParseRfc3339(FormatRfc3339(ms)), ms);
}

TEST(TimeTest, DaysPastTheEndOfAMonthRunOver) {
  EXPECT_EQ(ParseTime("2021-02-30T00:00:00Z"), ParseTime("2021-03-02T00:00:00Z"));
  EXPECT_EQ(ParseTime("2016-12-31T23:59:60Z"), ParseTime("2017-01-01T00:00:00Z"));
}

RC_GTEST_PROP(TimeTest, ReadsBackWhatIsWritten, ()) {
  const auto ms = *rc::gen::inRange<std::int64_t>(-62'167'219'200'000, 253'402'300'799'999);
  RC_ASSERT(ParseRfc3339(FormatRfc3339(ms)) == ms);
}

}  // namespace
}  // namespace codband
