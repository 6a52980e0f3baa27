#include "codband/experiments/paper_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "codband/base/file.h"
#include "codband/experiments/theory_check.h"

namespace codband::experiments {
namespace {

sim::PolicyResults Results(const std::string& spec, double regret, std::size_t users,
                           std::uint64_t changes) {
  sim::PolicyResults results{.spec = spec, .runs = {}};
  sim::RunResult& run = results.runs.emplace_back();
  run.regret = {regret / 2, regret};
  run.changes = {.true_changes = changes, .detected = 2, .stable_steps = 100, .delays = {3, 5}};
  run.user_models = {std::vector<ModelId>(users, 1), std::vector<ModelId>(users, 2)};
  run.true_changes = {{0, 10}};
  return results;
}

// Every experiment with the same regrets, in one run each; changes are 4, 5, 6, … or 4 in all.
PaperRecord Record(bool quick, bool equal_changes = false) {
  PaperRecord record{.quick = quick,
                     .seeds = 1,
                     .experiments = PaperExperiments(quick),
                     .policies = {"linucb", "codband", "oracle-greedy", "oracle-filter"},
                     .command = "codband paper --seed 1"};
  for (const PaperExperiment& experiment : record.experiments) {
    const std::size_t users = experiment.environment.users;
    const std::uint64_t changes = 4 + (equal_changes ? 0 : record.results.size());
    record.results.push_back({Results("linucb", 900, users, changes),
                              Results("codband", 300, users, changes),
                              Results("oracle-greedy", 100, users, changes),
                              Results("oracle-filter", 50, users, changes)});
  }
  return record;
}

class PaperReportTest : public testing::Test {
 protected:
  PaperReportTest() {
    std::string name = testing::TempDir() + "/codband_paper_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~PaperReportTest() override { std::filesystem::remove_all(directory_); }

  std::string Read(const std::string& name) const {
    return ReadFile(directory_ + "/" + name).value();
  }

  std::string directory_;
};

TEST_F(PaperReportTest, TableHasThePapersNumberInBracketsAndTheBestLearnerInBold) {
  const std::string table = RegretTable(Record(false)).ToMarkdown();
  EXPECT_NE(table.find("900 (24050)"), std::string::npos) << table;
  EXPECT_NE(table.find("**300**"), std::string::npos) << table;
  EXPECT_EQ(table.find("**50**"), std::string::npos) << table;  // a yardstick is no learner
  EXPECT_EQ(RegretTable(Record(true)).ToMarkdown().find("(24050)"), std::string::npos);
}

TEST_F(PaperReportTest, FilesHoldTableCurvesAndFigures) {
  ASSERT_TRUE(WritePaperReport(Record(false), directory_).ok());
  for (const char* name : {"figure2a.svg", "figure2b.svg", "figure2c.svg", "strip-codband.svg",
                           "theory-steps.svg", "theory-changes.svg", "theory-models.svg"}) {
    EXPECT_NE(Read(name).find("<svg"), std::string::npos) << name;
  }
  const std::string csv = Read("table.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 10 * 4);
  // 300 is twice the limit, 100 + 50.
  EXPECT_NE(csv.find("row1,10,500,3000,0.1,codband,1,300,0,,,2,4,2,4,0,0,,\n"), std::string::npos)
      << csv;
  EXPECT_NE(csv.find("linucb,1,900,0,24050,0.037422037422037424,6,"), std::string::npos) << csv;
  EXPECT_EQ(Read("curves.csv")
                .rfind("experiment,policy,rounds,regret_mean,regret_sd\n"
                       "row1,linucb,1500,450,0\nrow1,linucb,3000,900,0\n",
                       0),
            0U);
  EXPECT_NE(Read("report.html").find("codband paper --seed 1"), std::string::npos);
}

TEST_F(PaperReportTest, QuickReportSaysWhatItDoesNotShow) {
  ASSERT_TRUE(WritePaperReport(Record(true), directory_).ok());
  const std::string quick = Read("report.html");
  EXPECT_NE(quick.find("neither the numbers nor always the order"), std::string::npos);
  EXPECT_EQ(quick.find("the shape is that of the full experiment"), std::string::npos);
  ASSERT_TRUE(WritePaperReport(Record(false), directory_).ok());
  EXPECT_EQ(Read("report.html").find("A quick run"), std::string::npos);
}

TEST_F(PaperReportTest, ReportOfOneExperimentLeavesOutWhatItCannotDraw) {
  PaperRecord record = Record(false);
  record.experiments = {record.experiments[1]};
  record.results = {record.results[1]};
  ASSERT_TRUE(WritePaperReport(record, directory_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/figure2b.svg"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/strip-codband.svg"));
  EXPECT_TRUE(CheckTheory(record).figures.empty());
}

TEST_F(PaperReportTest, ExperimentsWithEquallyManyChangesHaveNoFittedLine) {
  const auto rows = [](const TheoryCheck& check) {
    const std::string csv = check.slopes.ToCsv();
    return std::count(csv.begin(), csv.end(), '\n');
  };
  const TheoryCheck equal = CheckTheory(Record(false, true));
  EXPECT_EQ(equal.figures.size(), 3U);
  EXPECT_EQ(rows(equal), rows(CheckTheory(Record(false))) - 1);
}

TEST(NeedsUserModelsTest, HoldsForTheStripChartsOnly) {
  const PaperRecord record = Record(false);
  for (std::size_t e = 0; e < record.experiments.size(); ++e) {
    for (std::size_t p = 0; p < record.policies.size(); ++p) {
      EXPECT_EQ(NeedsUserModels(record, e, p),
                record.experiments[e].name == "row5" && record.policies[p] == "codband");
    }
  }
}

TEST(PaperExperimentsTest, QuickHasFewerUsersAndRoundsAndNoPublishedNumbers) {
  const std::vector<PaperExperiment> full = PaperExperiments(false);
  const std::vector<PaperExperiment> quick = PaperExperiments(true);
  ASSERT_EQ(full.size(), 10U);
  ASSERT_EQ(quick.size(), full.size());
  EXPECT_EQ(full[0].published.at("dlinucb"), 3030);
  EXPECT_EQ(full[9].environment.setting, sim::Setting::kStationary);
  for (std::size_t e = 0; e < full.size(); ++e) {
    EXPECT_EQ(quick[e].name, full[e].name);
    EXPECT_EQ(quick[e].environment.users, full[e].environment.users * 2 / 5);
    EXPECT_EQ(quick[e].environment.rounds, full[e].environment.rounds / 3);
    EXPECT_EQ(quick[e].environment.period_min, full[e].environment.period_min / 3);
    EXPECT_TRUE(quick[e].published.empty());
    EXPECT_TRUE(quick[e].environment.Validate().ok());
  }
}

}  // namespace
}  // namespace codband::experiments
