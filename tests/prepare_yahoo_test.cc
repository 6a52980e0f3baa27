// codband prepare yahoo, and unbiased replay of its log.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/prepare_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;

TEST_F(PrepareTest, YahooBecomesALogAndItsClicks) {
  WriteYahoo();
  const Outcome outcome = Prepare("yahoo --groups 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Left out 1 malformed lines of 200"), std::string::npos);
  EXPECT_NE(outcome.err.find("ydata-fp-td-clicks-v1_0.20090501:78: '|broken'"), std::string::npos);
  const std::vector<std::string> log = Split(Text("log.tsv"), '\n');
  ASSERT_EQ(log.size(), 199U);
  std::map<std::string, std::set<std::string>> groups;  // by what the visitors' features begin with
  std::map<std::string, int> displayed_at;
  for (const std::string& line : log) {
    const std::vector<std::string> fields = Split(line, '\t');
    ASSERT_EQ(fields.size(), 5U);
    const std::vector<std::string> candidates = Split(fields[4], ',');
    EXPECT_EQ(candidates.size(), 10U);
    EXPECT_EQ(std::ranges::count(candidates, fields[2]), 1);
    groups[fields[0]].insert(std::to_string(std::stoll(fields[1]) % 4));
    ++displayed_at[fields[2] == candidates.front() ? "first" : "later"];
  }
  EXPECT_EQ(groups.size(), 4U);
  for (const auto& [group, kinds] : groups) EXPECT_EQ(kinds.size(), 1U);
  EXPECT_GT(displayed_at["later"], 100);  // its place does not tell
  const std::vector<PreparedEvent> events = Events();
  EXPECT_EQ(events.size(), 20U);
  for (const PreparedEvent& event : events) EXPECT_EQ((event.time - 1'241'160'900) % 10, 0);
  EXPECT_EQ(Meta()["stream"]["clicks"], 20);
  EXPECT_EQ(Meta()["stream"]["visits"], 199);
  EXPECT_EQ(Run("replay results/a --play events --policies random").exit_code, 0);
}

TEST_F(PrepareTest, YahooLogIsReplayedWithoutBias) {
  WriteYahoo();
  ASSERT_EQ(Prepare("yahoo --groups 4 --candidates 2").exit_code, 0);
  const Outcome outcome =
      Run("replay results/a --policies random,linucb:alpha=0 --seeds 3 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["stream"]["played"], "log");
  EXPECT_EQ(json["stream"]["events"], 199);
  EXPECT_EQ(json["stream"]["clicks"], 20);
  EXPECT_NEAR(json["stream"]["ctr"].get<double>(), 20.0 / 199, 1e-12);
  for (const Json& policy : json["policies"]) {
    for (std::size_t run = 0; run < 3; ++run) {
      const auto number = [&](const char* name) { return policy[name]["runs"][run].get<double>(); };
      // Of two candidates one is shown: about every second event counts.
      EXPECT_NEAR(number("matched"), 99.5, 30);
      EXPECT_NEAR(number("ctr"), number("reward") / number("matched"), 1e-12);
      EXPECT_NEAR(number("relative_ctr"), number("ctr") / (20.0 / 199), 1e-9);
    }
  }
  const Outcome table = Run("replay results/a --policies random");
  EXPECT_NE(table.out.find("times log"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("CTR of the log: 0.10050"), std::string::npos) << table.out;
  const Outcome mixed = Run("replay results/a --order interleaved");
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_NE(mixed.err.find("--order = 'interleaved', expected recorded"), std::string::npos);
}

// All articles but 103 have features near zero, so that a policy with a huge exploration bonus
// always chooses that one.
TEST_F(PrepareTest, ConstantPolicyHasTheClickThroughRateOfItsArticleInTheYahooLog) {
  std::string log;
  int shown = 0;
  int clicked = 0;
  int clicks = 0;
  for (int visit = 0; visit < 600; ++visit) {
    const int displayed = 101 + visit * 7919 % 5;
    const bool click = visit * visit % 11 < (displayed == 103 ? 4 : 1);
    clicks += click ? 1 : 0;
    shown += displayed == 103 ? 1 : 0;
    clicked += displayed == 103 && click ? 1 : 0;
    log += fmt::format("{} {} {} |user 2:0.{} 3:0.1 4:0.2 5:0.3 6:0.4 1:1.000000",
                       1'241'160'900 + visit, displayed, click ? 1 : 0, 1 + visit % 3);
    for (int article = 101; article <= 105; ++article) {
      const char* const value = article == 103 ? "1.000000" : "0.000001";
      log += fmt::format(" |{0} 2:{1} 3:{1} 4:{1} 5:{1} 6:{1} 1:{1}", article, value);
    }
    log += "\n";
  }
  Write("ydata-fp-td-clicks-v1_0.20090501", log);
  ASSERT_EQ(Prepare("yahoo --groups 3 --candidates 0").exit_code, 0);
  const Outcome outcome =
      Run("replay results/a --policies linucb:alpha=1000 --seeds 2 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json policy = Json::parse(outcome.out)["policies"][0];
  ASSERT_EQ(shown, 120);
  for (std::size_t run = 0; run < 2; ++run) {
    EXPECT_EQ(policy["matched"]["runs"][run], shown);
    EXPECT_EQ(policy["reward"]["runs"][run], clicked);
    EXPECT_NEAR(policy["ctr"]["runs"][run].get<double>(), clicked / 120.0, 1e-12);
    EXPECT_NEAR(policy["relative_ctr"]["runs"][run].get<double>(),
                (clicked / 120.0) / (clicks / 600.0), 1e-9);
  }
}

}  // namespace
}  // namespace codband
