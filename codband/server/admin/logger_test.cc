#include "codband/server/admin/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace codband::server {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class LoggerTest : public testing::Test {
 protected:
  Logger Make(LogLevel level, LogFormat format) {
    return Logger({.level = level,
                   .format = format,
                   .burst = 2,
                   .interval_ms = 1000,
                   .now_ms = [] { return std::int64_t{1'500'000'000'123}; },
                   .steady_ms = [this] { return steady_ms_; },
                   .write = [this](std::string_view line) { lines_.emplace_back(line); }});
  }

  std::int64_t steady_ms_ = 50;
  std::vector<std::string> lines_;
};

TEST_F(LoggerTest, ALineHasTimeLevelCauseAndMessage) {
  Logger logger = Make(LogLevel::kInfo, LogFormat::kText);
  logger.Write(LogLevel::kError, "quarantine", "log entry 7\nis \"bad\"");
  logger.Write(LogLevel::kDebug, "quarantine", "not asked for");
  EXPECT_THAT(lines_, ElementsAre("2017-07-14T02:40:00.123Z error quarantine log entry 7\\x0ais "
                                  "\"bad\"\n"));
}

TEST_F(LoggerTest, JsonIsOneObjectALine) {
  Logger logger = Make(LogLevel::kDebug, LogFormat::kJson);
  logger.Write(LogLevel::kWarning, "start", "a \"b\"\n\xff");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_EQ(lines_[0].find('\n'), lines_[0].size() - 1);
  const auto line = nlohmann::json::parse(lines_[0]);
  EXPECT_EQ(line.at("time"), "2017-07-14T02:40:00.123Z");
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("cause"), "start");
  EXPECT_EQ(line.at("message"), "a \"b\"\\x0a\xef\xbf\xbd");
}

TEST_F(LoggerTest, ManyLinesOfOneCauseAreCountedAndOthersGoOn) {
  Logger logger = Make(LogLevel::kInfo, LogFormat::kText);
  for (int i = 0; i < 100; ++i) logger.Write(LogLevel::kError, "record", std::to_string(i));
  EXPECT_THAT(lines_, SizeIs(2));
  logger.Write(LogLevel::kInfo, "record", "another level");
  logger.Write(LogLevel::kError, "store", "another cause");
  EXPECT_THAT(lines_, SizeIs(4));
  logger.Flush();
  EXPECT_THAT(lines_, SizeIs(4)) << "not yet";
  steady_ms_ += 1000;
  logger.Flush();
  ASSERT_THAT(lines_, SizeIs(5));
  EXPECT_NE(lines_[4].find("error record 99 (97 more of this cause were left out)"),
            std::string::npos)
      << lines_[4];
  logger.Flush(Logger::Now::kAll);
  EXPECT_THAT(lines_, SizeIs(5)) << "nothing is told twice";
  logger.Write(LogLevel::kError, "record", "a");
  logger.Write(LogLevel::kError, "record", "b");
  logger.Flush(Logger::Now::kAll);
  ASSERT_THAT(lines_, SizeIs(6)) << "two that were left out, in one line";
  EXPECT_NE(lines_[5].find("error record b (1 more"), std::string::npos) << lines_[5];
  steady_ms_ += 1'000'000;
  for (int i = 0; i < 5; ++i) logger.Write(LogLevel::kError, "record", "later");
  EXPECT_THAT(lines_, SizeIs(8)) << "no more than the burst is saved up";
}

}  // namespace
}  // namespace codband::server
