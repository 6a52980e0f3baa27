// End-to-end tests: the real program with its command line.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "codband/base/file.h"
#include "tests/cli_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;

std::size_t CountFiles(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    count += entry.path().extension() == ".json";
  }
  return count;
}

constexpr const char* kSmall =
    "simulate --users 6 --models 2 --rounds 60 --period 20:40 --dim 5 --pool 40 ";

Json WithoutTimings(const std::string& text) {
  Json json = Json::parse(text);
  for (Json& policy : json["policies"]) {
    EXPECT_GT(policy.erase("us_per_step"), 0U);
    EXPECT_GT(policy.erase("us_per_step_halves"), 0U);
  }
  return json;
}

TEST_F(CliTest, JsonIsOneObjectWithTheDocumentedFields) {
  const Outcome outcome =
      Run(std::string(kSmall) +
          "--policies linucb,codband:paper,likelihood=joint --seeds 2 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no progress bar in a pipe
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["environment"]["users"], 6);
  EXPECT_EQ(json["environment"]["period"], Json({20, 40}));
  ASSERT_EQ(json["policies"].size(), 2U);
  const Json& codband = json["policies"][1];
  EXPECT_EQ(codband["name"], "codband:paper,likelihood=joint");
  EXPECT_EQ(codband["regret"]["runs"].size(), 2U);
  const double mean =
      (codband["regret"]["runs"][0].get<double>() + codband["regret"]["runs"][1].get<double>()) / 2;
  EXPECT_NEAR(codband["regret"]["mean"].get<double>(), mean, 1e-9);
  for (const char* field :
       {"true", "detected", "median_delay", "false_alarms_per_1000", "missed"}) {
    EXPECT_TRUE(codband["changes"].contains(field)) << field;
  }
  EXPECT_TRUE(codband["cluster"].contains("precision"));
  EXPECT_TRUE(codband["cluster"].contains("recall"));
  EXPECT_TRUE(codband.contains("models"));
  EXPECT_GT(codband["us_per_step"].get<double>(), 0);
}

TEST_F(CliTest, EnvironmentInJsonIsTheOneAskedFor) {
  const std::string plain = std::string(kSmall) + "--policies linucb --format json ";
  const Json paper = Json::parse(Run(plain).out);
  EXPECT_EQ(paper["environment"]["order"], "turn");
  EXPECT_EQ(paper["environment"]["drift"], false);
  EXPECT_EQ(paper["environment"]["separation"], nullptr);
  EXPECT_EQ(paper["environment"]["rewards"], "gaussian");
  EXPECT_EQ(paper["environment"]["noise"], 0.1);
  const Json ours = Json::parse(
      Run(plain + "--setting 4 --order random --drift --separation 0.4 --rewards rare-clicks").out);
  EXPECT_EQ(ours["environment"]["setting"], 4);
  EXPECT_EQ(ours["environment"]["order"], "random");
  EXPECT_EQ(ours["environment"]["drift"], true);
  EXPECT_EQ(ours["environment"]["separation"], 0.4);
  EXPECT_EQ(ours["environment"]["rewards"], "rare-clicks");
  EXPECT_EQ(ours["environment"]["noise"], nullptr);
  EXPECT_NE(ours["policies"][0]["regret"], paper["policies"][0]["regret"]);
}

TEST_F(CliTest, ResultsAreTheSameForAnyNumberOfThreads) {
  const std::string arguments = std::string(kSmall) + "--seeds 2 --format json --threads ";
  const Outcome one = Run(arguments + "1");
  const Outcome two = Run(arguments + "2");
  EXPECT_EQ(WithoutTimings(one.out).dump(), WithoutTimings(two.out).dump());
}

TEST_F(CliTest, BadInputNamesTheFlagTheValueAndWhatIsAllowed) {
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"simulate --period 9:3", "--period = '9:3', expected MIN:MAX with 1 ≤ MIN ≤ MAX"},
      {"simulate --period 9", "--period = '9', expected MIN:MAX"},
      {"simulate --noise 0", "--noise = 0, expected a number from"},
      {"simulate --noise -1", "--noise = -1, expected a number from"},
      {"simulate --noise nan", "--noise = nan, expected a number from"},
      {"simulate --noise loud", "--noise = 'loud', expected a number"},
      {"simulate --users 0", "--users = '0', expected a whole number from 1"},
      {"simulate --users -3", "--users = '-3', expected a whole number from 1"},
      {"simulate --dim 5000", "--dim = 5000, expected a whole number from 1 to 1024"},
      {"simulate --arms 20 --pool 10", "--arms = 20, expected a whole number from 1 to 10"},
      {"simulate --setting 5", "--setting = '5', expected a whole number from 1 to 4"},
      {"simulate --order shuffled", "--order = 'shuffled', expected turn, random or zipf"},
      {"simulate --separation 2", "--separation = 2, expected a number from 0.01 to 1.4"},
      {"simulate --separation near", "--separation = 'near', expected a number"},
      {"simulate --drift --setting 3", "--drift = true with setting = 3, expected setting 1, 2"},
      {"simulate --rewards likes", "--rewards = 'likes', expected one of gaussian, clicks"},
      {"simulate --rewards clicks --noise 1", "--noise = '1', expected none: clicks have no"},
      {"simulate --seeds 0", "--seeds = '0', expected a whole number from 1"},
      {"simulate --policies nosuch", "policy 'nosuch' is unknown; there are codband, linucb"},
      {"simulate --policies linucb:alpha=x", "alpha = 'x', expected a number from 0 to 1000"},
      {"simulate --format xml", "--format = 'xml', expected table, json or csv"},
      {"simulate --models 50 --dim 2", "no room for more than"},
      {"simulate --nosuch 1", "--nosuch"},
      {"policies nosuch", "policy 'nosuch' is unknown"},
      {"simulate --userz 3", "codband simulate: --userz is unknown; did you mean --users?"},
      {"simulate --round=3", "--round is unknown; did you mean --rounds?"},
      {"simulate --nothing-like-it", "codband simulate: --nothing-like-it is unknown\n"},
      {"simulate stray", "'stray' is not expected here"},
      {"simulat", "command 'simulat' is unknown; did you mean simulate?"},
      {"nosuch", "command 'nosuch' is unknown; there are simulate, paper, stress, prepare, replay"},
      {"stress --cells clicks,nosuch", "--cells: 'nosuch' is unknown; there are base, d5, d10"},
      {"stress --policies codband",
       "--policies = 'codband', expected the policy under test and at"},
      {"stress --policies codband,oracle-greedy", "at least one other that is no yardstick"},
      {"stress --policies codband,nosuch", "policy 'nosuch' is unknown"},
      {"stress --seeds 0", "--seeds = '0', expected a whole number from 1"},
      {"stress --format xml", "--format = 'xml', expected table, json or csv"},
      {"replay", "DIR is required"},
      {"replay /nosuch", "cannot open /nosuch/features.tsv"},
      {"replay /nosuch --seeds 0", "--seeds = '0', expected a whole number from 1"},
      {"replay /nosuch", "'codband prepare' makes them"},
      {"replay /nosuch --play log", "cannot open /nosuch/features.tsv"},
      {"replay /nosuch --play all", "--play = 'all', expected events or log"},
      {"replay /nosuch --order random", "--order = 'random', expected recorded or interleaved"},
      {"replay /nosuch --format xml", "--format = 'xml', expected table, json or csv"},
      {"", "subcommand"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("--help"), std::string::npos) << arguments << "\n" << outcome.err;
  }
}

TEST_F(CliTest, FullStandardOutputIsAnError) {
  const Outcome outcome = Run("policies >/dev/full");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST_F(CliTest, UnwritableOutputIsRefusedBeforeAnyWork) {
  const Outcome outcome = Run("simulate --rounds 100000000 --out /proc/nothing");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("/proc/nothing"), std::string::npos) << outcome.err;
}

TEST_F(CliTest, ReportHoldsFiguresTableAndTheCommand) {
  const Outcome outcome =
      Run(std::string(kSmall) + "--policies linucb,oracle-greedy --out " + directory_ + "/report");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("oracle-greedy"), std::string::npos);
  EXPECT_NE(outcome.err.find("report.html"), std::string::npos);
  const std::string page = ReadFile(directory_ + "/report/report.html").value();
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("codband simulate --setting 2 --users 6"), std::string::npos);
  for (const char* name : {"regret.svg", "results.json", "runs.csv", "curves.csv"}) {
    EXPECT_FALSE(ReadFile(directory_ + "/report/" + name).value().empty()) << name;
  }
  EXPECT_EQ(Json::parse(ReadFile(directory_ + "/report/results.json").value())["policies"].size(),
            2U);
}

TEST_F(CliTest, CsvHasOneLineForEachRun) {
  const Outcome outcome =
      Run(std::string(kSmall) + "--policies linucb,lints --seeds 3 --format csv");
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 2 * 3);
  EXPECT_EQ(outcome.out.rfind("policy,seed,regret,", 0), 0U);
}

TEST_F(CliTest, PoliciesListsParametersRangesAndDefaults) {
  const Outcome list = Run("policies");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_NE(list.out.find("codband:paper"), std::string::npos);
  const Outcome one = Run("policies codband");
  for (const char* text :
       {"likelihood", "joint, product", "a number from", "Preset codband:paper"}) {
    EXPECT_NE(one.out.find(text), std::string::npos) << text;
  }
  const Json json = Json::parse(Run("policies --format json").out);
  EXPECT_EQ(json["policies"][0]["name"], "codband");
}

TEST_F(CliTest, HelpTeachesWithExamples) {
  for (const char* arguments : {"--help", "simulate --help", "stress --help", "prepare --help",
                                "replay --help", "policies --help"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments;
    EXPECT_FALSE(outcome.out.empty()) << arguments;
  }
  EXPECT_NE(Run("simulate --help").out.find("Examples:"), std::string::npos);
  EXPECT_EQ(Run("--version").out.rfind("codband 0.", 0), 0U);
}

constexpr const char* kStress = "stress --quick --cells clicks,users10 --seeds 2 ";

TEST_F(CliTest, StressComparesTheFirstPolicyWithTheOthersInEveryCell) {
  const Outcome outcome = Run(std::string(kStress) + "--policies linucb,oracle-greedy,random");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("4 users"), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("\n\nlinucb loses 0 of 2 cells\n")) << outcome.out;

  const Json json = Json::parse(
      Run(std::string(kStress) + "--policies linucb,oracle-greedy,random --format json").out);
  EXPECT_EQ(json["judged"], "linucb");
  EXPECT_EQ(json["seeds"], Json({1, 2}));
  EXPECT_EQ(json["lost"], Json::array());
  ASSERT_EQ(json["cells"].size(), 2U);
  EXPECT_EQ(json["cells"][0]["name"], "clicks");
  EXPECT_EQ(json["cells"][0]["environment"]["rewards"], "clicks");
  EXPECT_EQ(json["cells"][1]["environment"]["users"], 4);
  for (const Json& cell : json["cells"]) {
    const Json& policies = cell["policies"];
    ASSERT_EQ(policies.size(), 3U);
    EXPECT_EQ(policies[0]["regret"]["runs"].size(), 2U);
    EXPECT_EQ(cell["best_other"], "random");  // a yardstick is no rival
    EXPECT_EQ(cell["lost"], false);
    EXPECT_DOUBLE_EQ(cell["ratio"].get<double>(), policies[0]["regret"]["mean"].get<double>() /
                                                      policies[2]["regret"]["mean"].get<double>());
  }
}

TEST_F(CliTest, StressMarksLostCellsAndFailsOnlyIfStrict) {
  const std::string arguments =
      "stress --quick --cells clicks,users10 --seeds 4 --policies random,lints,linucb ";
  const Outcome lenient = Run(arguments);
  EXPECT_EQ(lenient.exit_code, 0) << lenient.err;
  EXPECT_NE(lenient.out.find("random loses 2 of 2 cells: clicks, users10\n"), std::string::npos)
      << lenient.out;
  const Outcome strict = Run(arguments + "--strict");
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_EQ(strict.out, lenient.out);
  EXPECT_EQ(strict.err, "codband stress: random loses 2 of 2 cells: clicks, users10\n");
  EXPECT_EQ(Run(std::string(kStress) + "--policies linucb,random --strict").exit_code, 0);
}

TEST_F(CliTest, StressIsTheSameForAnyNumberOfThreadsAndASimulationOfItsCell) {
  const std::string arguments =
      std::string(kStress) + "--policies codband,linucb --format csv --threads ";
  const Outcome one = Run(arguments + "1");
  EXPECT_EQ(one.out, Run(arguments + "3").out);
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 1 + 2 * 2 * 2);
  const Json simulated =
      Json::parse(Run("simulate --users 20 --rounds 500 --period 100:333 --rewards clicks "
                      "--policies linucb --seed 2 --format json")
                      .out);
  const auto regret = simulated["policies"][0]["regret"]["mean"].get<double>();
  const std::string line = "clicks,linucb,2,";
  const std::size_t at = one.out.find(line);
  ASSERT_NE(at, std::string::npos) << one.out;
  EXPECT_DOUBLE_EQ(std::stod(one.out.substr(at + line.size())), regret);
}

// Three items and two users: one always chooses the first item, the other the second.
class ReplayCliTest : public CliTest {
 protected:
  ReplayCliTest() {
    std::string events;
    for (int e = 0; e < 60; ++e) events += e % 2 == 0 ? "8\t0\t1,2,3\n" : "9\t0\t2,3,1\n";
    Write("features.tsv", "1\t1\t0\n2\t0\t1\n3\t0.5\t-0.5\n");
    Write("events.tsv", events);
  }

  void Write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(WriteFileDurably(directory_ + "/" + name, content).ok());
  }
};

TEST_F(ReplayCliTest, JsonHoldsStreamSeedsAndCurves) {
  const std::string arguments =
      "replay " + directory_ + " --policies linucb,random --seed 3 --seeds 2 --format json";
  const Outcome outcome = Run(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["stream"]["events"], 60);
  EXPECT_EQ(json["stream"]["users"], 2);
  EXPECT_EQ(json["stream"]["items"], 3);
  EXPECT_EQ(json["stream"]["dim"], 2);
  EXPECT_NEAR(json["stream"]["chance"].get<double>(), 20, 1e-9);
  EXPECT_EQ(json["seeds"], Json({3, 4}));
  EXPECT_EQ(json["checkpoint_events"].size(), 60U);
  ASSERT_EQ(json["policies"].size(), 2U);
  const Json& linucb = json["policies"][0];
  EXPECT_EQ(linucb["name"], "linucb");
  for (const char* name :
       {"reward", "times_chance", "changes_per_1000", "models", "us_per_event"}) {
    EXPECT_EQ(linucb[name]["runs"].size(), 2U) << name;
    EXPECT_TRUE(linucb[name].contains("mean")) << name;
    EXPECT_TRUE(linucb[name].contains("sd")) << name;
  }
  EXPECT_GT(linucb["reward"]["mean"].get<double>(), 50);
  EXPECT_EQ(linucb["models"]["mean"], 2);
  EXPECT_EQ(linucb["reward_curve"]["mean"].size(), 60U);
  EXPECT_EQ(linucb["reward_curve"]["mean"].back(), linucb["reward"]["mean"]);
}

TEST_F(ReplayCliTest, TableAndCsvHaveALineForEachPolicyAndEachRun) {
  const Outcome table = Run("replay " + directory_);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* text : {"codband:paper", "uniform-linucb", "random", "times chance",
                           "Events: 60, users: 2, items: 3, features: 2, reward by chance: 20.0"}) {
    EXPECT_NE(table.out.find(text), std::string::npos) << table.out;
  }
  const Outcome csv =
      Run("replay " + directory_ + " --policies linucb,lints --seeds 3 --format csv");
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 1 + 2 * 3);
  EXPECT_EQ(
      csv.out.rfind("policy,seed,reward,times_chance,changes_per_1000,models,us_per_event\n", 0),
      0U);
}

TEST_F(ReplayCliTest, OrderIsThatOfTheFileOrInterleaved) {
  std::string events;
  for (int e = 0; e < 60; ++e) events += e < 30 ? "8\t0\t1,2,3\n" : "9\t0\t2,3,1\n";
  Write("events.tsv", events);
  const auto curve = [&](const std::string& flags) {
    const Outcome outcome =
        Run("replay " + directory_ + " --policies uniform-linucb --format json" + flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out)["policies"][0]["reward_curve"]["mean"];
  };
  EXPECT_EQ(curve(""), curve(" --order recorded"));
  EXPECT_EQ(curve(" --order interleaved"), curve(" --order interleaved"));
  EXPECT_NE(curve(""), curve(" --order interleaved"));
}

TEST_F(ReplayCliTest, BadStreamsAndYardsticksAreRefused) {
  const Outcome yardstick = Run("replay " + directory_ + " --policies linucb,oracle-linucb");
  EXPECT_EQ(yardstick.exit_code, 2);
  EXPECT_NE(yardstick.err.find("policy 'oracle-linucb' is a yardstick"), std::string::npos)
      << yardstick.err;
  Write("events.tsv", std::string("\x89PNG\r\n\x1A\n\0\t\0\t1", 13));
  const Outcome picture = Run("replay " + directory_);
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_EQ(picture.out, "");
  EXPECT_NE(picture.err.find("/events.tsv, line 1: 1 fields, expected 3"), std::string::npos);
  Write("events.tsv", "\x89PNG\x01\t0\t1\n");
  EXPECT_NE(Run("replay " + directory_).err.find("user = '\\x89PNG\\x01', expected a whole"),
            std::string::npos);
  Write("events.tsv", "8\t0\t1,2\n8\t0\t4\n");
  const Outcome unknown = Run("replay " + directory_);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(
      unknown.err.find("/events.tsv, line 2: item 4 is unknown, expected one of features.tsv"),
      std::string::npos)
      << unknown.err;
}

constexpr const char* kPaper =
    "paper --quick --rows row4,setting3 --policies linucb,random,oracle-greedy,oracle-filter "
    "--seeds 2 --out ";

TEST_F(CliTest, PaperKilledHalfwayResumesToTheSameNumbers) {
  const std::string whole = directory_ + "/whole";
  const std::string killed = directory_ + "/killed";
  ASSERT_EQ(Run(kPaper + whole).exit_code, 0);
  const std::size_t all = CountFiles(whole + "/runs");
  EXPECT_EQ(all, 2U * 4 * 2);

  std::filesystem::create_directories(killed + "/runs");
  const std::string command = std::string("exec ") + CODBAND_PROGRAM + " " + kPaper + killed;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 30'000 && CountFiles(killed + "/runs") < 2; ++i) usleep(2000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_LT(CountFiles(killed + "/runs"), all);
  EXPECT_FALSE(std::filesystem::exists(killed + "/table.csv"));

  const Outcome resumed = Run(kPaper + killed);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("runs are there already"), std::string::npos) << resumed.err;
  for (const char* name : {"table.csv", "curves.csv", "table.md"}) {
    EXPECT_EQ(ReadFile(whole + "/" + name).value(), ReadFile(killed + "/" + name).value()) << name;
  }
}

TEST_F(CliTest, PaperWritesTablesFiguresAndAPage) {
  const std::string out = directory_ + "/paper";
  const Outcome outcome =
      Run("paper --quick --rows row1,row5,setting3 --policies codband,linucb,oracle-greedy,"
          "oracle-filter --out " +
          out);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("row5"), std::string::npos);
  for (const char* name :
       {"report.html", "table.md", "table.csv", "curves.csv", "figure2b.svg", "figure2c.svg",
        "strip-codband.svg", "theory-steps.svg", "theory-changes.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
  }
  const std::string page = ReadFile(out + "/report.html").value();
  EXPECT_NE(page.find("codband paper --quick --seed 1 --seeds 1 --rows row1,row5,setting3"),
            std::string::npos);
}

TEST_F(CliTest, PaperRefusesBadInputBeforeAnyWork) {
  const struct {
    std::string arguments;
    const char* message;
  } cases[] = {
      {"--seeds 0", "--seeds = '0', expected a whole number from 1"},
      {"--rows row1,row9", "--rows: 'row9' is unknown; there are row1, row2"},
      {"--policies linucb,nosuch", "policy 'nosuch' is unknown"},
      {"--policies linucb,linucb:alpha=0.6", "'linucb' and 'linucb:alpha=0.6' are the same"},
      {"--out /proc/nothing", "/proc/nothing"},
      {"--out ''", "name of the directory is empty"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome =
        Run("paper " + arguments +
            (arguments.starts_with("--out") ? "" : " --out " + directory_ + "/x"));
    EXPECT_NE(outcome.exit_code, 0) << arguments;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/x")) << arguments;
  }
}

}  // namespace
}  // namespace codband
