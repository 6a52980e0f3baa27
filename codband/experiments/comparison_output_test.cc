#include "codband/experiments/comparison_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "codband/base/file.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::json;

// Two policies, two seeds, two checkpoints; the second policy detects changes.
ComparisonRecord Record() {
  sim::RunResult run;
  run.regret = {10, 30};
  run.models = 4;
  run.us_per_step = 2.5;
  sim::RunResult better = run;
  better.regret = {10, 20};
  better.changes = {.true_changes = 5,
                    .detected = 4,
                    .false_alarms = 1,
                    .stable_steps = 500,
                    .delays = {1, 2, 2, 9}};
  better.clusters = {.same_both = 3, .same_model = 4, .same_truth = 6};
  sim::RunResult worse = better;
  worse.regret = {20, 40};
  return {.environment = {.users = 7},
          .first_seed = 3,
          .seeds = 2,
          .command = "codband simulate <again>",
          .seconds = 12,
          .comparison = {.checkpoint_rounds = {50, 100},
                         .policies = {{"linucb", {run, run}}, {"codband", {better, worse}}}}};
}

TEST(ComparisonOutputTest, JsonHoldsEveryDocumentedField) {
  const Json json = Json::parse(ToJson(Record()));
  EXPECT_EQ(json["environment"]["users"], 7);
  EXPECT_EQ(json["seeds"], Json({3, 4}));
  EXPECT_EQ(json["checkpoint_rounds"], Json({50, 100}));
  const Json& codband = json["policies"][1];
  EXPECT_EQ(codband["name"], "codband");
  EXPECT_EQ(codband["regret"]["mean"], 30);
  EXPECT_NEAR(codband["regret"]["sd"].get<double>(), 14.142135623730951, 1e-12);
  EXPECT_EQ(codband["regret"]["runs"], Json({20, 40}));
  EXPECT_EQ(codband["changes"]["true"], 10);
  EXPECT_EQ(codband["changes"]["detected"], 8);
  EXPECT_EQ(codband["changes"]["missed"], 2);
  EXPECT_EQ(codband["changes"]["median_delay"], 2);
  EXPECT_EQ(codband["changes"]["false_alarms_per_1000"], 2);
  EXPECT_EQ(codband["cluster"]["precision"], 0.75);
  EXPECT_EQ(codband["cluster"]["recall"], 0.5);
  EXPECT_EQ(codband["models"], 4);
  EXPECT_EQ(codband["regret_curve"]["mean"], Json({15, 30}));
  EXPECT_TRUE(json["policies"][0]["changes"]["median_delay"].is_null());
  EXPECT_TRUE(json["policies"][0]["cluster"]["recall"].is_null());
}

TEST(ComparisonOutputTest, CsvHasOneLineForEachRun) {
  EXPECT_EQ(ToCsv(Record()),
            "policy,seed,regret,changes_true,changes_detected,median_delay,false_alarms_per_1000,"
            "models,precision,recall,us_per_step\n"
            "linucb,3,30,0,0,,0,4,,,2.5\n"
            "linucb,4,30,0,0,,0,4,,,2.5\n"
            "codband,3,20,5,4,2,2,4,0.75,0.5,2.5\n"
            "codband,4,40,5,4,2,2,4,0.75,0.5,2.5\n");
}

TEST(ComparisonOutputTest, TextHasDashesWhereAPolicyDetectsNothing) {
  const std::string text = ToText(Record());
  EXPECT_NE(
      text.find("linucb       30   0         –      –           –       4          –       –"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("8 of 10"), std::string::npos) << text;
}

TEST(ComparisonOutputTest, PartitionsStandBesideOne) {
  ComparisonRecord record = Record();
  EXPECT_FALSE(Json::parse(ToJson(record))["policies"][1].contains("partitions"));
  record.environment.partitions = 4;
  record.alone = record.comparison;
  for (sim::RunResult& run : record.comparison.policies[1].runs) {
    for (double& regret : run.regret) regret *= 1.25;
  }
  const Json json = Json::parse(ToJson(record));
  const Json& cost = json["policies"][1]["partitions"]["in_all"];
  EXPECT_EQ(cost["regret_of_one"], 30);
  EXPECT_EQ(cost["regret"], 37.5);
  EXPECT_EQ(cost["cost"], 0.25);
  EXPECT_EQ(cost["standard_error"], 0);
  EXPECT_EQ(json["policies"][0]["partitions"]["after_first_tenth"]["cost"], 0);
  const std::string text = ToText(record);
  EXPECT_NE(text.find("Regret of 4 partitions beside that of one"), std::string::npos) << text;
  EXPECT_NE(text.find("+25.0%"), std::string::npos) << text;
}

TEST(ComparisonOutputTest, ReportWritesPageFigureAndNumbers) {
  std::string directory = testing::TempDir() + "/codband_comparison_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  ComparisonRecord record = Record();
  record.environment.drift = true;
  record.environment.rewards = sim::RewardKind::kClicks;
  ASSERT_TRUE(WriteReport(record, directory).ok());
  EXPECT_EQ(ReadFile(directory + "/results.json").value(), ToJson(record));
  EXPECT_EQ(ReadFile(directory + "/runs.csv").value(), ToCsv(record));
  EXPECT_EQ(ReadFile(directory + "/curves.csv")
                .value()
                .rfind("policy,rounds,regret_mean,regret_sd\n\"linucb\",50,10,0\n", 0),
            0U);
  EXPECT_NE(ReadFile(directory + "/regret.svg").value().find("<svg"), std::string::npos);
  const std::string page = ReadFile(directory + "/report.html").value();
  for (const char* text : {"codband simulate &lt;again&gt;", "7 simulated users", "gradually",
                           "clicks", "3 to 4", "Mean over 2 seeds"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(WriteReport(record, directory).ok());
}

}  // namespace
}  // namespace codband::experiments
