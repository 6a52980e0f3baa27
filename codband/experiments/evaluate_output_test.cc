#include "codband/experiments/evaluate_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "codband/base/file.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::json;

EvaluationRecord EvaluatedLog() {
  EvaluationRecord record;
  record.command = "codband evaluate --log x.json";
  record.files = {"x.json", "y.json"};
  record.log = {.files = 2,
                .lines = 103,
                .skipped = 3,
                .duplicates = 1,
                .first_problem = "x.json:7: cut\x1B short",
                .timed = true,
                .features = "2 as logged"};
  record.sorted = true;
  record.dim = 2;
  record.users = 1;
  record.actions = 3;
  record.options.confidence = 0.9;
  eval::TargetReport logged;
  logged.name = "logged";
  logged.on_policy = true;
  logged.estimates = {{.estimator = eval::Estimator::kMean,
                       .value = 0.25,
                       .bootstrap = eval::BootstrapResult{{0.2, 0.3}, 0.03},
                       .guaranteed = eval::Interval{0.1, 0.4}}};
  logged.effective_sample = 100;
  eval::TargetReport target;
  target.name = "linucb";
  target.estimates.resize(2);
  target.estimates[0].estimator = eval::Estimator::kReplay;
  target.estimates[1].estimator = eval::Estimator::kDm;
  target.estimates[1].value = 0.5;
  target.unsupported = 0.125;
  target.warnings = {"thin support"};
  record.evaluation.events = 1234;
  record.evaluation.targets = {logged, target};
  record.evaluation.warnings = {"the log never explores"};
  return record;
}

TEST(EvaluateOutputTest, TextHasEstimatesSupportAndWarningsWithoutControlCharacters) {
  const std::string text = ToText(EvaluatedLog());
  for (const char* part :
       {"1,234 decisions for 1 user among 3 actions", "90% bootstrap", "0.2 … 0.3", "12.5%",
        "3 of 103 lines left out", "the log never explores", "linucb: thin support"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find('\x1B'), std::string::npos);
}

TEST(EvaluateOutputTest, WithoutWarningsThereIsNoSuchSection) {
  EvaluationRecord record = EvaluatedLog();
  record.log.skipped = 0;
  record.evaluation.warnings.clear();
  record.evaluation.targets[1].warnings.clear();
  EXPECT_EQ(ToText(record).find("Warnings"), std::string::npos);
}

TEST(EvaluateOutputTest, JsonHoldsLogAndEstimatesAndIsNullWhereThereIsNone) {
  const Json json = Json::parse(ToJson(EvaluatedLog()));
  EXPECT_EQ(json["log"]["files"], Json({"x.json", "y.json"}));
  EXPECT_EQ(json["log"]["events"], 1234);
  EXPECT_EQ(json["log"]["skipped"], 3);
  EXPECT_EQ(json["log"]["order"], "time");
  EXPECT_EQ(json["confidence"], 0.9);
  EXPECT_EQ(json["learn"], "all");
  const Json& mean = json["policies"][0]["estimates"][0];
  EXPECT_EQ(mean["estimator"], "mean");
  EXPECT_EQ(mean["bootstrap"], Json({0.2, 0.3}));
  EXPECT_EQ(mean["guaranteed"], Json({0.1, 0.4}));
  const Json& replay = json["policies"][1]["estimates"][0];
  EXPECT_TRUE(replay["value"].is_null());
  EXPECT_TRUE(replay["bootstrap"].is_null());
  EXPECT_EQ(json["policies"][1]["unsupported"], 0.125);
}

TEST(EvaluateOutputTest, CsvHasOneLineForEachEstimate) {
  EXPECT_EQ(ToCsv(EvaluatedLog()),
            "policy,estimator,value,standard_error,bootstrap_low,bootstrap_high,guaranteed_low,"
            "guaranteed_high,effective_sample,replay_events,largest_weight\n"
            "logged,mean,0.25,0.03,0.2,0.3,0.1,0.4,100,0,0\n"
            "linucb,replay,,,,,,,0,0,0\n"
            "linucb,dm,0.5,,,,,,0,0,0\n");
}

TEST(EvaluateOutputTest, ReportHoldsTheFigureTheWarningsAndTheCommand) {
  std::string directory = testing::TempDir() + "/codband_evaluation_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  ASSERT_TRUE(WriteReport(EvaluatedLog(), directory).ok());
  EXPECT_EQ(ReadFile(directory + "/results.json").value(), ToJson(EvaluatedLog()));
  EXPECT_EQ(ReadFile(directory + "/estimates.csv").value(), ToCsv(EvaluatedLog()));
  EXPECT_NE(ReadFile(directory + "/estimates.svg").value().find("linucb"), std::string::npos);
  const std::string page = ReadFile(directory + "/report.html").value();
  for (const char* part :
       {"<svg", "codband evaluate --log x.json", "thin support", "x.json, y.json"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(WriteReport(EvaluatedLog(), directory).ok());
}

}  // namespace
}  // namespace codband::experiments
