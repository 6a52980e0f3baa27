// The report of codband replay, run as a person would.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/random.h"
#include "codband/report/test_support.h"
#include "tests/cli_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;

// Two kinds of items, loud and quiet. Users 0 and 1 like loud ones and users 2 and 3 quiet ones;
// user 1 goes over to quiet ones, and somebody else takes over then.
class ReplayReportTest : public CliTest {
 protected:
  static constexpr int kEvents = 1600;

  ReplayReportTest() {
    std::string features;
    for (int item = 0; item < 40; ++item) {
      RandomStream random({.seed = 1, .event = static_cast<std::uint64_t>(item)}, 1);
      const double side = item < 20 ? 1 : -1;
      features += fmt::format("{}\t{:.4f}\t{:.4f}\n", 100 + item, side + 0.2 * random.Uniform(),
                              random.Uniform() - 0.5);
    }
    std::string events;
    for (int e = 0; e < kEvents; ++e) {
      const int user = e % 4;
      const bool quiet = user >= 2 || (user == 1 && e > kEvents / 2);
      const int good = e / 4 % 20 + (quiet ? 20 : 0);
      const int bad = e / 3 % 20 + (quiet ? 0 : 20);
      events += fmt::format("{}\t{}\t{},{}\n", user, e, 100 + good, 100 + bad);
      origins_.emplace_back(user == 1 && quiet ? 77 : 10 + user, quiet ? 1 : 0);
    }
    Write("features.tsv", features);
    Write("events.tsv", events);
  }

  void Write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(WriteFileDurably(directory_ + "/" + name, content).ok());
  }
  void WriteTags() const {
    std::string tags;
    for (int item = 0; item < 40; ++item) {
      tags += fmt::format("{}\t{}\t3\n{}\tr&b <live>\t1\n", 100 + item,
                          item < 20 ? "loud" : "quiet", 100 + item);
    }
    Write("tags.tsv", tags);
  }
  void WriteOrigins() const {
    std::string text;
    for (const auto& [source, group] : origins_) text += fmt::format("{}\t{}\n", source, group);
    Write("origins.tsv", text);
  }
  std::string Read(const std::string& name) const {
    const auto text = ReadFile(directory_ + "/" + name);
    EXPECT_TRUE(text.ok()) << name;
    return text.ok() ? text.value() : "";
  }

  std::vector<std::pair<int, int>> origins_;
};

TEST_F(ReplayReportTest, PageHoldsFiguresNumbersCloudsAndBoundaries) {
  WriteTags();
  WriteOrigins();
  const Outcome outcome =
      Run("replay " + directory_ + " --policies codband,linucb,random --seeds 2 --out " +
          directory_ + "/report");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("/report/report.html"), std::string::npos);
  const std::string html = Read("report/report.html");
  for (const char* text :
       {"Normalised reward on ", "Accumulated reward on ", "times chance", "of 4 users",
        "</title>loud<", "r&amp;b &lt;live&gt;", "Detected changes and true boundaries",
        "by chance", "codband replay ", "--seeds 2"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
  for (const char* name : {"reward.svg", "normalised.svg", "clouds-codband.svg"}) {
    const std::string svg = Read(std::string("report/") + name);
    EXPECT_EQ(report::XmlError(svg), "") << name;
    EXPECT_NE(html.find(svg), std::string::npos) << name;
  }
  // Two seeds: a band for each policy, random included.
  EXPECT_GE(report::Count(Read("report/normalised.svg"), "cb-band"), 3U);
  const Json json = Json::parse(Read("report/results.json"));
  EXPECT_EQ(json["policies"].size(), 3U);
  const std::string runs = Read("report/runs.csv");
  EXPECT_EQ(std::count(runs.begin(), runs.end(), '\n'), 1 + 3 * 2);
}

TEST_F(ReplayReportTest, NormalisedCurvesAreRewardOverChance) {
  const Outcome outcome =
      Run("replay " + directory_ + " --policies linucb,random --seeds 3 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  for (const Json& policy : json["policies"]) {
    const auto events = json["checkpoint_events"].get<std::vector<double>>();
    const auto reward = policy["reward_curve"]["mean"].get<std::vector<double>>();
    const auto sd = policy["reward_curve"]["sd"].get<std::vector<double>>();
    const auto normalised = policy["normalised_curve"]["mean"].get<std::vector<double>>();
    const auto normalised_sd = policy["normalised_curve"]["sd"].get<std::vector<double>>();
    ASSERT_EQ(normalised.size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      // Two candidates each.
      EXPECT_NEAR(normalised[i], reward[i] / (events[i] / 2), 1e-9);
      EXPECT_NEAR(normalised_sd[i], sd[i] / (events[i] / 2), 1e-9);
    }
    EXPECT_NEAR(normalised.back(), policy["times_chance"]["mean"].get<double>(), 1e-9);
    EXPECT_TRUE(policy["boundaries"].is_null());
    EXPECT_TRUE(policy["groups"].empty());
  }
}

// The log shows one of two items in turn, and every third visit brings a click.
TEST_F(ReplayReportTest, NormalisedCurvesOfALogAreClickRates) {
  std::string log;
  std::vector<double> clicks = {0};  // after so many events
  for (int e = 0; e < 300; ++e) {
    log += fmt::format("{}\t{}\t{}\t{}\t100,130\n", e % 2, e, e % 4 < 2 ? 100 : 130,
                       e % 3 == 0 ? 1 : 0);
    clicks.push_back(clicks.back() + (e % 3 == 0 ? 1 : 0));
  }
  Write("log.tsv", log);
  const Outcome outcome =
      Run("replay " + directory_ + " --policies linucb,random --format json --out " + directory_ +
          "/report");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  for (const Json& policy : json["policies"]) {
    std::size_t checked = 0;
    for (std::size_t i = 0; i < json["checkpoint_events"].size(); ++i) {
      const std::size_t events = json["checkpoint_events"][i];
      const double matched = policy["matched_curve"]["mean"][i];
      if (matched == 0) continue;
      const double rate = policy["reward_curve"]["mean"][i].get<double>() / matched;
      EXPECT_NEAR(policy["normalised_curve"]["mean"][i].get<double>(),
                  rate / (clicks[events] / static_cast<double>(events)), 1e-9);
      ++checked;
    }
    EXPECT_GT(checked, 50U);
    EXPECT_NEAR(policy["normalised_curve"]["mean"].back().get<double>(),
                policy["relative_ctr"]["mean"].get<double>(), 1e-9);
  }
  const std::string html = Read("report/report.html");
  for (const char* text : {"Normalised CTR on ", "Clicks on ", "times log", "300 logged events",
                           "a log does not record them"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
}

TEST_F(ReplayReportTest, BoundariesStayWhenUsersAreInterleaved) {
  WriteOrigins();
  const Outcome outcome =
      Run("replay " + directory_ + " --policies codband --order interleaved --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["policies"][0]["boundaries"]["user"]["true"], 1);
  EXPECT_EQ(json["policies"][0]["boundaries"]["group"]["true"], 1);
}

TEST_F(ReplayReportTest, GroupsLikeWhatTheirUsersTake) {
  WriteTags();
  const Outcome outcome = Run("replay " + directory_ + " --policies codband --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& groups = json["policies"][0]["groups"];
  ASSERT_GE(groups.size(), 1U);
  std::uint64_t users = 0;
  std::uint64_t before = 5;
  for (const Json& group : groups) {
    users += group["users"].get<std::uint64_t>();
    EXPECT_LE(group["users"].get<std::uint64_t>(), before);
    before = group["users"];
    // 40 items are fewer than 100: all count, and their tags share them 3 to 1.
    std::map<std::string, double> weights;
    for (const Json& tag : group["tags"]) weights[tag["tag"]] = tag["weight"];
    EXPECT_NEAR(weights["loud"], 20 * 0.75, 1e-9);
    EXPECT_NEAR(weights["quiet"], 20 * 0.75, 1e-9);
    EXPECT_NEAR(weights["r&b <live>"], 40 * 0.25, 1e-9);
  }
  EXPECT_LE(users, 4U);
}

// Counted again from the list of changes, by the definition in the report.
TEST_F(ReplayReportTest, BoundariesAreCountedAsTheReportSays) {
  WriteOrigins();
  const Outcome outcome = Run("replay " + directory_ +
                              " --policies codband:paper,adts,linucb --seeds 2 "
                              "--boundary-window 30 --format json --out " +
                              directory_ + "/report");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_TRUE(json["policies"][2]["boundaries"].is_null());
  std::map<std::string, double> detected;
  std::map<std::string, double> hits;
  std::istringstream lines(Read("report/changes.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "policy,seed,event,user");
  // The one boundary: user 1's first event after the middle. Every fourth event is the user's.
  constexpr int kBoundary = kEvents / 2 + 1;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    ASSERT_EQ(fields.size(), 4U) << line;
    const int event = std::stoi(fields[2]);
    EXPECT_EQ(event % 4, std::stoi(fields[3]));
    detected[fields[0]] += 0.5;
    if (event % 4 == 1 && event >= kBoundary && event < kBoundary + 4 * 30) {
      hits[fields[0]] += 0.5;
    }
  }
  for (int i = 0; i < 2; ++i) {
    const Json& policy = json["policies"][static_cast<std::size_t>(i)];
    const std::string name = policy["name"];
    EXPECT_EQ(policy["boundaries"]["window"], 30);
    for (const char* kind : {"user", "group"}) {
      const Json& counts = policy["boundaries"][kind];
      EXPECT_EQ(counts["true"], 1);
      EXPECT_EQ(counts["detected"].get<double>(), detected[name]);
      EXPECT_EQ(counts["at_boundary"].get<double>(), hits[name]);
      EXPECT_LE(counts["found"].get<double>(), 1);
    }
    EXPECT_NEAR(policy["changes_per_1000"]["mean"].get<double>(), 1000 * detected[name] / kEvents,
                1e-9);
  }
  EXPECT_GT(detected["codband:paper"], 0);
  EXPECT_GT(hits["codband:paper"], 0);
}

TEST_F(ReplayReportTest, TableSaysHowManyChangesAreAtABoundary) {
  WriteOrigins();
  const Outcome outcome = Run("replay " + directory_ + " --policies codband,linucb");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Detected changes and true boundaries:"), std::string::npos);
  EXPECT_NE(outcome.out.find("codband  user"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("codband  group"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("linucb   user"), std::string::npos) << outcome.out;
}

TEST_F(ReplayReportTest, SaysWhyThereAreNoCloudsOrBoundaries) {
  const std::string out = " --out " + directory_ + "/report";
  ASSERT_EQ(Run("replay " + directory_ + " --policies codband" + out).exit_code, 0);
  std::string html = Read("report/report.html");
  EXPECT_NE(html.find("the stream has no tags.tsv"), std::string::npos);
  EXPECT_NE(html.find("the stream has no origins.tsv"), std::string::npos);
  WriteTags();
  WriteOrigins();
  ASSERT_EQ(Run("replay " + directory_ + " --policies linucb" + out).exit_code, 0);
  html = Read("report/report.html");
  EXPECT_NE(html.find("none of these policies describes models"), std::string::npos);
  EXPECT_NE(html.find("none of these policies detects changes"), std::string::npos);
}

TEST_F(ReplayReportTest, BadNotesAreRefused) {
  const std::string run = "replay " + directory_ + " --policies random";
  Write("tags.tsv", "100\tloud\tmany\n");
  Outcome outcome = Run(run);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("tags.tsv, line 1: how often = 'many', expected a number above 0"),
            std::string::npos)
      << outcome.err;
  Write("tags.tsv", "");
  Write("origins.tsv", "1\t2\n");
  outcome = Run(run);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("origin of 1 events, expected 1600"), std::string::npos)
      << outcome.err;
  WriteOrigins();
  outcome = Run(run + " --boundary-window 0");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--boundary-window = '0', expected a whole number from 1"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace codband
