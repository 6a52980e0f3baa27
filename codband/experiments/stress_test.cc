#include "codband/experiments/stress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codband/base/file.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::json;

// One run for each seed, with this regret.
sim::PolicyResults CellResults(const std::string& spec, const std::vector<double>& regret) {
  sim::PolicyResults results{.spec = spec, .runs = {}};
  for (const double value : regret) {
    sim::RunResult& run = results.runs.emplace_back();
    run.regret = {value / 2, value};
  }
  return results;
}

StressOutcome Judge(const std::vector<double>& regret) {
  return JudgeCell({.name = "clicks", .changed = "0/1", .environment = {}},
                   {CellResults("codband", {regret[0]}), CellResults("oracle-greedy", {regret[1]}),
                    CellResults("linucb", {regret[2]}), CellResults("lints", {regret[3]})});
}

TEST(StressTest, BestOtherIsTheLeastRegretThatIsNoYardstick) {
  const StressOutcome outcome = Judge({10, 1, 40, 20});
  EXPECT_EQ(outcome.best_other, 3U);
  EXPECT_DOUBLE_EQ(outcome.ratio(), 0.5);
  EXPECT_FALSE(outcome.lost());
}

TEST(StressTest, CellIsLostToALowerRegretAndNotToAnEqualOne) {
  EXPECT_TRUE(Judge({10, 1, 9, 20}).lost());
  EXPECT_EQ(Judge({10, 1, 9, 20}).best_other, 2U);
  EXPECT_FALSE(Judge({10, 1, 10, 20}).lost());
}

TEST(StressTest, RegretIsTheMeanOverSeeds) {
  const StressOutcome outcome =
      JudgeCell({.name = "base", .changed = "nothing", .environment = {}},
                {CellResults("codband", {10, 20}), CellResults("linucb", {40, 20})});
  EXPECT_EQ(outcome.regret, (std::vector<double>{15, 30}));
}

TEST(StressTest, CellOfSeveralSeedsIsLostByMoreThanNoiseAlone) {
  const auto judge = [](const std::vector<double>& first, const std::vector<double>& other) {
    return JudgeCell({.name = "base", .changed = "nothing", .environment = {}},
                     {CellResults("codband", first), CellResults("linucb", other)});
  };
  // Pairs are 1, 2 and 3 apart: 2 ± 4.303 · 1/√3.
  const StressOutcome close = judge({11, 22, 33}, {10, 20, 30});
  EXPECT_DOUBLE_EQ(close.difference.mean, 2);
  EXPECT_NEAR(close.difference.margin.value(), 2.484, 1e-3);
  EXPECT_FALSE(close.lost());
  // The same mean, and hardly any noise in it, although seeds differ as much.
  EXPECT_TRUE(judge({11.9, 22, 32.1}, {10, 20, 30}).lost());
  EXPECT_FALSE(judge({8.1, 18, 27.9}, {10, 20, 30}).lost());
}

TEST(StressTest, MarginIsStudents) {
  std::vector<double> differences;
  for (int i = 0; i < 5; ++i) differences.push_back(i);
  EXPECT_NEAR(PairedMean(differences).margin.value(), 2.776 * std::sqrt(2.5 / 5), 1e-9);
  EXPECT_FALSE(PairedMean({differences.data(), 1}).margin.has_value());
}

TEST(StressTest, NeedsAPolicyUnderTestAndOneItCanLoseTo) {
  EXPECT_TRUE(CheckStressPolicies({"codband", "linucb"}).ok());
  EXPECT_TRUE(CheckStressPolicies({"codband", "oracle-greedy", "linucb"}).ok());
  for (const std::vector<std::string>& policies :
       {std::vector<std::string>{}, {"codband"}, {"codband", "oracle-greedy"}}) {
    EXPECT_EQ(CheckStressPolicies(policies).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CheckStressPolicies({"codband", "oracle-greedy"}).message(),
            "--policies = 'codband,oracle-greedy', expected the policy under test and at least one "
            "other that is no yardstick");
}

class StressOutputTest : public testing::Test {
 protected:
  StressOutputTest() {
    record_.policies = {"codband", "oracle-greedy", "linucb", "lints"};
    record_.first_seed = 5;
    record_.seeds = 1;
    record_.outcomes = {Judge({10, 1, 40, 20}), Judge({10, 1, 5, 20})};
    record_.outcomes[1].cell.name = "drift";
  }

  StressRecord record_;
};

TEST_F(StressOutputTest, TextMarksLostCellsAndConcludes) {
  const std::string text = ToText(record_);
  EXPECT_NE(
      text.find(
          "cell    changed  codband  oracle-greedy  linucb  lints  ratio  difference  loses to"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("2.00           5  linucb\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n\ncodband loses 1 of 2 cells: drift\n")) << text;
  EXPECT_EQ(record_.lost(), std::vector<std::string>{"drift"});
  record_.outcomes.pop_back();
  EXPECT_EQ(Conclusion(record_), "codband loses 0 of 1 cell");
}

TEST_F(StressOutputTest, JsonHoldsCellsWithTheirPopulationAndEveryRun) {
  const Json json = Json::parse(ToJson(record_));
  EXPECT_EQ(json["judged"], "codband");
  EXPECT_EQ(json["seeds"], Json({5}));
  EXPECT_EQ(json["lost"], Json({"drift"}));
  ASSERT_EQ(json["cells"].size(), 2U);
  const Json& cell = json["cells"][1];
  EXPECT_EQ(cell["best_other"], "linucb");
  EXPECT_EQ(cell["ratio"], 2);
  EXPECT_EQ(cell["lost"], true);
  EXPECT_EQ(cell["difference"]["mean"], 5);
  EXPECT_EQ(cell["difference"]["margin"], nullptr);
  EXPECT_EQ(cell["environment"]["users"], 100);
  EXPECT_EQ(cell["policies"][3]["regret"]["runs"], Json({20}));
}

TEST_F(StressOutputTest, CsvHasOneLineForEachRun) {
  const std::string csv = ToCsv(record_);
  EXPECT_EQ(csv.rfind("cell,policy,seed,regret\nclicks,codband,5,10\n", 0), 0U) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 4);
}

TEST_F(StressOutputTest, ReportHasTheConclusionTheTableAndTheChart) {
  const std::string directory = testing::TempDir() + "codband-stress-report";
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(WriteReport(record_, directory).ok());
  const std::string page = ReadFile(directory + "/report.html").value();
  EXPECT_NE(page.find("codband loses 1 of 2 cells: drift."), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("<strong>20</strong>"), std::string::npos);  // the best other
  EXPECT_EQ(ReadFile(directory + "/results.json").value(), ToJson(record_));
  EXPECT_EQ(ReadFile(directory + "/runs.csv").value(), ToCsv(record_));
  std::filesystem::remove_all(directory);
}

TEST(StressTest, PlaysEveryCell) {
  const sim::SyntheticOptions small{.users = 3,
                                    .models = 2,
                                    .rounds = 10,
                                    .period_min = 4,
                                    .period_max = 8,
                                    .pool = 20,
                                    .dim = 4};
  StressRecord record{.policies = {"linucb", "random"}, .seeds = 2};
  double done = 0;
  ASSERT_TRUE(PlayStress(
                  {{.name = "a", .changed = "x", .environment = small},
                   {.name = "b", .changed = "y", .environment = small}},
                  1, [&](double share) { done += share; }, record)
                  .ok());
  ASSERT_EQ(record.outcomes.size(), 2U);
  EXPECT_EQ(record.outcomes[1].cell.name, "b");
  EXPECT_EQ(record.outcomes[1].policies[1].spec, "random");
  EXPECT_EQ(record.outcomes[1].policies[1].runs.size(), 2U);
  EXPECT_NEAR(done, 1, 1e-9);
  StressRecord wrong{.policies = {"linucb", "nosuch"}};
  EXPECT_FALSE(
      PlayStress({{.name = "a", .changed = "x", .environment = small}}, 1, {}, wrong).ok());
}

}  // namespace
}  // namespace codband::experiments
