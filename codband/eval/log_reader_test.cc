#include "codband/eval/log_reader.h"

#include <gtest/gtest.h>

#include "codband/eval/log_files_testing.h"

namespace codband::eval {
namespace {

class FindFilesTest : public LogFilesTest {};

TEST_F(FindFilesTest, DirectoryStandsForItsDecisionFilesByName) {
  const std::string b = Write("decisions-2.json", "");
  const std::string a = Write("decisions-1.json", "");
  Write("decisions-3.txt", "");
  const std::string other = Write("other.json", "");
  const auto files = FindFiles({.files = {other, directory_}});
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files.value(), (std::vector<std::string>{other, a, b}));
}

TEST_F(FindFilesTest, WhatIsMissingIsNamed) {
  const std::string missing = directory_ + "/none.json";
  EXPECT_EQ(FindFiles({.files = {missing}}).status().message(),
            missing + " does not exist, expected a log of decisions");
  EXPECT_EQ(FindFiles({.files = {directory_}}).status().message(),
            directory_ + " has no files decisions-*.json");
}

TEST(LineCounterTest, LeavesOutWhatItMayAndKeepsTheFirstProblem) {
  LineCounter counter({.files = {"x"}, .leave_out = BadLines::kForeign});
  for (int i = 0; i < 3; ++i) counter.Line();
  EXPECT_TRUE(counter.Skip("x", 2, "no JSON", true).ok());
  EXPECT_TRUE(counter.Skip("x", 3, "cut", true).ok());
  EXPECT_EQ(counter.Skip("x", 4, "reward = nan", false).message(), "x:4: reward = nan");
  const auto summary = counter.Finish({.files = {"x", "y"}}, 1);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().files, 2U);
  EXPECT_EQ(summary.value().lines, 3U);
  EXPECT_EQ(summary.value().skipped, 2U);
  EXPECT_EQ(summary.value().first_problem, "x:2: no JSON");
}

TEST(LineCounterTest, StrictFailsOnEveryLineAndLenientOnNone) {
  LineCounter strict({.files = {"x"}, .leave_out = BadLines::kFail});
  EXPECT_FALSE(strict.Skip("x", 1, "cut", true).ok());
  LineCounter lenient({.files = {"x"}, .leave_out = BadLines::kAny});
  EXPECT_TRUE(lenient.Skip("x", 1, "reward = nan", false).ok());
}

TEST(LineCounterTest, LogWithoutAUsableLineIsRefused) {
  LineCounter empty({.files = {"x"}});
  EXPECT_EQ(empty.Finish({.files = {"x"}}, 0).status().message(),
            "x has no lines, expected decisions");
  LineCounter counter({.files = {"x"}});
  counter.Line();
  EXPECT_TRUE(counter.Skip("x", 1, "cut", true).ok());
  EXPECT_EQ(counter.Finish({.files = {"x"}}, 0).status().message(),
            "none of 1 lines can be used; the first: x:1: cut");
}

TEST(LineCounterTest, ProblemsAreShownWithoutControlCharacters) {
  LineCounter counter({.files = {"x"}, .leave_out = BadLines::kFail});
  EXPECT_EQ(counter.Skip("x", 1, "a\x1B[1m", true).message(), "x:1: a [1m");
}

}  // namespace
}  // namespace codband::eval
