#include <gtest/gtest.h>

#include "codband/eval/log_files_testing.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {
namespace {

class CsvLogTest : public LogFilesTest {
 protected:
  Result<LoggedData> Read(const std::string& content, const CsvLogOptions& options = {},
                          BadLines leave_out = BadLines::kForeign) const {
    return ReadCsvLog({.files = {Write("log.csv", content)}, .leave_out = leave_out}, options);
  }
};

TEST_F(CsvLogTest, ActionsThatOccurAreTheCandidatesOfEveryRow) {
  const auto read = Read("action,reward,propensity\n10,1,0.5\n9,0,0.25\n10,0,0.5\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const LoggedDecisions& log = read.value().log;
  ASSERT_EQ(log.size(), 3U);
  // As numbers 9 comes before 10, as text it would not.
  EXPECT_EQ(log.action_names.name(0), "9");
  EXPECT_EQ(log.event(0).chosen, 1U);
  EXPECT_EQ(log.event(1).propensity, 0.25);
  EXPECT_EQ(log.candidate_count(2), 2U);
  EXPECT_EQ(log.dim(), 2U);  // one-hot by action
  EXPECT_EQ(log.arms(0).features[0], 1);
  EXPECT_EQ(log.arms(0).features[1], 0);
  EXPECT_TRUE(log.probabilities(0).empty());
  EXPECT_FALSE(read.value().summary.timed);
  EXPECT_EQ(read.value().summary.features, "2 from columns");
}

TEST_F(CsvLogTest, ItemsGiveNumbersAndOneHotColumns) {
  const std::string items = Write("items.csv", "id,price,brand,\nb,2.5,x,9\na,1,y,9\n");
  const auto read =
      Read("action,reward,propensity\na,1,0.5\n", {.items_file = items, .items_column = "id"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const LoggedDecisions& log = read.value().log;
  EXPECT_EQ(log.dim(), 3U);  // price, brand x, brand y; the column without a name is ignored
  EXPECT_EQ(log.action_names.name(0), "b");  // the order of the items file
  EXPECT_EQ(log.event(0).chosen, 1U);
  const std::vector<double> expected = {2.5, 1, 0, 1, 0, 1};
  EXPECT_TRUE(std::ranges::equal(log.arms(0).features, expected));
}

TEST_F(CsvLogTest, ContextHasABlockForEachActionAfterTheActionsOwnColumn) {
  const auto read =
      Read("action,reward,propensity,hour,fit_a,fit_b\na,1,0.5,7,0.1,0.2\nb,0,0.5,8,0.3,0.4\n",
           {.context = "hour", .action_prefix = "fit_"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::vector<double> expected = {0.1, 7, 0, 0.2, 0, 7};
  EXPECT_TRUE(std::ranges::equal(read.value().log.arms(0).features, expected));
}

TEST_F(CsvLogTest, UserIsAColumnOrACombination) {
  const std::string content =
      "action,reward,propensity,user,a,b\nx,1,0.5,u,1,2\nx,1,0.5,u,1,3\nx,1,0.5,v,1,2\n";
  EXPECT_EQ(Read(content).value().log.users.size(), 2U);
  const auto both = Read(content, {.user = "a,b"});
  EXPECT_EQ(both.value().log.users.size(), 2U);
  EXPECT_EQ(both.value().log.event(0).user, both.value().log.event(2).user);
  EXPECT_EQ(Read("action,reward,propensity\nx,1,1\n").value().log.users.size(), 1U);
}

TEST_F(CsvLogTest, TimeAndGroupAreReadFromTheirColumns) {
  const auto read = Read("action,reward,propensity,when,place\nx,1,0.5,2,top\n",
                         {.time = "when", .group = "place"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().log.event(0).time_ms, 2000);
  EXPECT_EQ(read.value().log.groups.name(read.value().log.event(0).group), "top");
  EXPECT_TRUE(read.value().summary.timed);
}

TEST_F(CsvLogTest, RowsThatAreNoDecisionAreLeftOutAndInvalidValuesFail) {
  const std::string header = "action,reward,propensity\n";
  const auto foreign = Read(header + "x,1,0.5\nx,1\n");
  ASSERT_TRUE(foreign.ok()) << foreign.status().message();
  EXPECT_EQ(foreign.value().summary.skipped, 1U);
  const std::string invalid = header + "x,1,0.5\nx,1,0\n";
  EXPECT_EQ(Read(invalid).status().message(),
            directory_ + "/log.csv:3: propensity = '0', expected a number above 0 and at most 1");
  EXPECT_EQ(Read(invalid, {}, BadLines::kAny).value().log.size(), 1U);
  EXPECT_FALSE(Read(header + "x,1,0.5\nx,1\n", {}, BadLines::kFail).ok());
}

TEST_F(CsvLogTest, TooManyFeaturesAreRefused) {
  std::string content = "action,reward,propensity\n";
  for (int i = 0; i < 1100; ++i) content += std::to_string(i) + ",1,0.5\n";
  const auto read = Read(content);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message().rfind("1100 actions with these columns have 1100 features", 0),
            0U)
      << read.status().message();
}

TEST_F(CsvLogTest, ChancesAreReadByGroupAndAction) {
  const auto table =
      ReadChances(Write("t.csv", "group,action,probability\ntop,a,0.5\ntop,b,2\nlow,a,0\n"));
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table.value().size(), 3U);
  EXPECT_EQ(table.value().at({"top", "b"}), 2);
  EXPECT_EQ(ReadChances(Write("t.csv", "action,probability\na,1\n")).value().at({"", "a"}), 1);
  EXPECT_FALSE(ReadChances(Write("t.csv", "action,probability\na,1\na,2\n")).ok());
  EXPECT_FALSE(ReadChances(Write("t.csv", "action,probability\na,-1\n")).ok());
  EXPECT_FALSE(ReadChances(directory_ + "/none.csv").ok());
}

}  // namespace
}  // namespace codband::eval
