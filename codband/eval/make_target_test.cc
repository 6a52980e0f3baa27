#include "codband/eval/make_target.h"

#include <gtest/gtest.h>

#include "codband/eval/log_files_testing.h"
#include "codband/eval/test_support.h"

namespace codband::eval {
namespace {

class MakeTargetTest : public LogFilesTest {
 protected:
  std::vector<double> Chances(const std::string& spec) {
    auto target = MakeTarget(spec, log_, {});
    EXPECT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ(target.value()->name(), spec);
    std::vector<double> chances(2);
    target.value()->Chances(log_, 0, chances);
    return chances;
  }

  LoggedDecisions log_ = SmallBandit{.p = {0.25, 0.75}, .mean = {0.5, 0.5}}.Log(3, 1);
};

TEST_F(MakeTargetTest, NamesStandForTheirTargets) {
  EXPECT_EQ(Chances("logged"), (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(Chances("first"), (std::vector<double>{1, 0}));
  EXPECT_EQ(Chances("uniform"), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(Chances("random"), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(Chances("table:" + Write("t.csv", "action,probability\na0,1\na1,4\n")),
            (std::vector<double>{0.2, 0.8}));
}

TEST_F(MakeTargetTest, WhatCannotBeMadeIsRefused) {
  EXPECT_EQ(MakeTarget("nosuch", log_, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeTarget("oracle-greedy", log_, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(MakeTarget("table:" + directory_ + "/none.csv", log_, {}).ok());
  const std::string other = Write("t.csv", "action,probability\nz,1\n");
  const auto target = MakeTarget("table:" + other, log_, {});
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().message().rfind(other + ": no candidate of event 1", 0), 0U)
      << target.status().message();
}

}  // namespace
}  // namespace codband::eval
