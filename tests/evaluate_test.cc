// End-to-end tests of codband evaluate.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "codband/base/file.h"
#include "codband/base/random.h"
#include "codband/eval/log_reader.h"
#include "tests/cli_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;

// As `codband serve` writes them: two candidates, the chosen one first in `a`.
std::string Line(int id, int chosen, double p0, double reward, const std::string& user = "u") {
  const double p = chosen == 0 ? p0 : 1 - p0;
  return fmt::format(
      R"({{"_label_cost":{},"_label_probability":{},"_label_Action":{},"_labelIndex":{},)"
      R"("_original_label_cost":{},"_skipLearn":false,"_defaulted":false,)"
      R"("Timestamp":"2021-07-29T10:00:{:02}.000Z","Version":"1","EventId":"e{}",)"
      R"("a":[{},{}],"p":[{},{}],"c":{{"User":{{"id":"{}"}},"_multi":[)"
      R"({{"_tag":"x","Features":{{"f0":1}}}},{{"_tag":"y","Features":{{"f1":0.5,"f2":2}}}}]}},)"
      R"("pdrop":0,"VWState":{{"m":"linucb"}}}})",
      0 - reward, p, chosen + 1, chosen, 0 - reward, id % 60, id, chosen + 1, 2 - chosen, p, 1 - p,
      user);
}

class EvaluateTest : public CliTest {
 protected:
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(WriteFileDurably(path, content).ok());
    return path;
  }

  // A log of a policy that chooses action 0 with probability 0.4. Rewards are Bernoulli: 0.7 for
  // action 0, else 0.2.
  std::string Log(std::size_t events) const {
    std::string text;
    for (std::size_t i = 0; i < events; ++i) {
      RandomStream random({.seed = 3, .event = i}, 1);
      const int chosen = random.Uniform() < 0.4 ? 0 : 1;
      const double reward = random.Uniform() < (chosen == 0 ? 0.7 : 0.2) ? 1 : 0;
      text += Line(static_cast<int>(i), chosen, 0.4, reward) + "\n";
    }
    return text;
  }

  Outcome Run(const std::string& arguments) const { return CliTest::Run("evaluate " + arguments); }

  Json RunJson(const std::string& arguments) const {
    const Outcome outcome = Run(arguments + " --format json --resamples 200");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  void ExpectWrong(const std::string& arguments, const std::string& message) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
};

const Json& Estimate(const Json& json, const std::string& policy, const std::string& estimator) {
  for (const Json& target : json["policies"]) {
    for (const Json& estimate : target["estimates"]) {
      if (target["name"] == policy && estimate["estimator"] == estimator) return estimate;
    }
  }
  throw std::invalid_argument("no estimate " + policy + " " + estimator);
}

// As Personalizer writes them: the context in `FromUrl`, of an action its features in `j`, or as
// Vowpal Wabbit has them, namespaces of any name. In the morning news bring a click, in the evening
// music; both were shown with the same chance.
std::string TurningLine(int id, bool personalizer, bool with_context) {
  RandomStream random({.seed = 7, .event = static_cast<std::uint64_t>(id)}, 1);
  const bool morning = random.Uniform() < 0.5;
  const int chosen = random.Uniform() < 0.5 ? 0 : 1;
  const int cost = (chosen == 0) == morning ? -1 : 0;
  const char* const time = morning ? "morning" : "evening";
  std::string context;
  if (with_context) {
    context = personalizer ? fmt::format(R"("FromUrl":[{{"timeOfDay":"{}"}}],)", time)
                           : fmt::format(R"("GUser":{{"time":"{}","major":"eng"}},)", time);
  }
  const char* const actions =
      personalizer ? R"({"_tag":"n","i":{"constant":1,"id":"n"},"j":[{"type":"news"}]},)"
                     R"({"_tag":"m","i":{"constant":1,"id":"m"},"j":[{"type":"music"}]})"
                   : R"({"TAction":{"type":"news"}},{"TAction":{"type":"music"}})";
  return fmt::format(
      R"({{"_label_cost":{},"_label_probability":0.5,"_label_Action":{},"_labelIndex":{},)"
      R"("Timestamp":"2021-07-29T10:00:{:02}.000Z","Version":"1","EventId":"e{}","a":[{},{}],)"
      R"("c":{{{}"_multi":[{}]}},"p":[0.5,0.5],"VWState":{{"m":"x"}}}})",
      cost, chosen + 1, chosen, id % 60, id, chosen + 1, 2 - chosen, context, actions);
}

TEST_F(EvaluateTest, LogsOfPersonalizerAndVowpalWabbitAreEvaluatedUnderTheirContexts) {
  for (const bool personalizer : {true, false}) {
    for (const bool with_context : {true, false}) {
      SCOPED_TRACE(testing::Message() << personalizer << with_context);
      std::string text;
      for (int i = 0; i < 1000; ++i) text += TurningLine(i, personalizer, with_context) + "\n";
      const Json json = RunJson("--policies uniform-linucb --log " + Write("log.json", text));
      const double value = Estimate(json, "uniform-linucb", "dr")["value"].get<double>();
      if (with_context) {
        EXPECT_GT(value, 0.9);
      } else {
        EXPECT_NEAR(value, 0.5, 0.06);  // four standard errors
      }
    }
  }
}

TEST_F(EvaluateTest, EstimatesFromADecisionLog) {
  const std::string log = Write("decisions-20210729-100000-000.json", Log(2000));
  const Json json = RunJson("--log " + log + " --policies logged,first,uniform,linucb,codband");
  EXPECT_EQ(json["log"]["events"], 2000);
  EXPECT_EQ(json["log"]["skipped"], 0);
  EXPECT_EQ(json["log"]["dim"], 3);
  EXPECT_EQ(json["log"]["actions"], 2);
  EXPECT_EQ(json["log"]["order"], "time");
  EXPECT_EQ(json["log"]["all_probabilities"], true);
  const auto near = [&](const char* policy, double truth) {
    for (const char* estimator : {"replay", "ips", "snips", "dr"}) {
      const Json& estimate = Estimate(json, policy, estimator);
      EXPECT_NEAR(estimate["value"], truth, 0.08) << policy << estimator;
      EXPECT_LT(estimate["bootstrap"][0], truth + 0.03) << policy << estimator;
      EXPECT_GT(estimate["bootstrap"][1], truth - 0.03) << policy << estimator;
    }
    EXPECT_LT(Estimate(json, policy, "ips")["guaranteed"][0], truth);
    EXPECT_GT(Estimate(json, policy, "ips")["guaranteed"][1], truth);
    EXPECT_TRUE(Estimate(json, policy, "snips")["guaranteed"].is_null());
  };
  near("first", 0.7);
  near("uniform", 0.45);
  EXPECT_NEAR(Estimate(json, "logged", "mean")["value"], 0.4, 0.05);
  // Policies that learn find out that the first action is better.
  EXPECT_GT(Estimate(json, "codband", "dr")["value"], 0.6);
  EXPECT_GT(Estimate(json, "linucb", "ips")["value"], 0.6);
}

TEST_F(EvaluateTest, ReadsDirectoriesAndSeveralFilesAlike) {
  const std::string log = Log(300);
  const std::size_t half = log.find('\n', log.size() / 2) + 1;
  Write("decisions-20210729-100000-000.json", log.substr(0, half));
  Write("decisions-20210729-100000-001.json", log.substr(half));
  Write("other.json", "{}");
  const std::string whole = Write("whole.json", log);
  const std::string flags = " --policies logged,codband";
  const Json one = RunJson("--log " + whole + flags);
  const Json directory = RunJson("--log " + directory_ + flags);
  const Json two =
      RunJson(fmt::format("--log {0}/decisions-20210729-100000-000.json "
                          "{0}/decisions-20210729-100000-001.json --threads 1{1}",
                          directory_, flags));
  EXPECT_EQ(one["policies"], directory["policies"]);
  EXPECT_EQ(one["policies"], two["policies"]);
}

TEST_F(EvaluateTest, OrderOfTheFileDoesNotMatterIfTimesAreLogged) {
  std::string forward;
  std::string backward;
  for (int i = 0; i < 60; ++i) {
    const std::string line = Line(i, i % 3 == 0 ? 0 : 1, 0.4, i % 2) + "\n";
    forward += line;
    backward.insert(0, line);
  }
  const std::string flags = " --policies logged,linucb";
  const Json one = RunJson("--log " + Write("f.json", forward) + flags);
  const Json two = RunJson("--log " + Write("b.json", backward) + flags);
  EXPECT_EQ(one["policies"], two["policies"]);
  const Json as_logged = RunJson("--log " + Write("b.json", backward) + flags + " --order log");
  EXPECT_NE(one["policies"], as_logged["policies"]);
}

TEST_F(EvaluateTest, BadLinesAreLeftOutAndCounted) {
  std::string log = Log(100);
  log += "garbage\n\n" + Line(3, 0, 0.4, 1) + "\n" + Line(200, 0, 0.4, 1).substr(0, 80);
  const std::string file = Write("log.json", log);
  const Json json = RunJson("--log " + file + " --policies logged");
  EXPECT_EQ(json["log"]["events"], 100);
  EXPECT_EQ(json["log"]["lines"], 103);
  EXPECT_EQ(json["log"]["skipped"], 3);
  EXPECT_EQ(json["log"]["duplicates"], 1);
  EXPECT_EQ(json["log"]["first_problem"].get<std::string>().rfind(file + ":101: ", 0), 0u);
  EXPECT_NE(Run("--log " + file + " --policies logged").out.find("3 of 103 lines left out"),
            std::string::npos);
  ExpectWrong("--strict --log " + file, file + ":101: expected a JSON object");
}

TEST_F(EvaluateTest, InvalidValuesAreLeftOutOnlyIfLenient) {
  std::string log = Log(100);
  log += Line(200, 0, 0, 1) + "\n";
  const std::string file = Write("log.json", log);
  ExpectWrong("--log " + file, file + ":101: propensity = 0, expected a number above 0");
  const Json json = RunJson("--lenient --log " + file + " --policies logged");
  EXPECT_EQ(json["log"]["events"], 100);
  EXPECT_EQ(json["log"]["skipped"], 1);
  ExpectWrong("--lenient --strict --log " + file, "--strict and --lenient, expected one of them");
}

TEST_F(EvaluateTest, BinaryInputIsShownAsPrintableText) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>((i * 89 + 7) % 255 + 1);
  for (const char* name : {"log.json", "log.csv"}) {
    const Outcome outcome = Run("--log " + Write(name, bytes));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_LT(outcome.err.size(), 4000U);
    for (const char c : outcome.err) EXPECT_TRUE(c == '\n' || (c < 0 || c >= 0x20));
  }
}

TEST_F(EvaluateTest, SaysWhichFieldOfALineIsWrong) {
  const std::string good = Line(1, 0, 0.4, 1);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    const std::size_t at = line.find(from);
    EXPECT_NE(at, line.npos) << from;
    line.replace(at, from.size(), to);
    return "--log " + Write("log.json", Line(0, 1, 0.4, 0) + "\n" + line + "\n");
  };
  const std::string at = directory_ + "/log.json:2: ";
  ExpectWrong(with("_probability\":0.4", "_probability\":0"),
              at + "propensity = 0, expected a number above 0 and at most 1");
  ExpectWrong(with("_probability\":0.4", "_probability\":1.5"), at + "propensity = 1.5, expected");
  ExpectWrong(with("_probability\":0.4", "_probability\":0.9"),
              at + "propensity = 0.9, expected 0.4, the probability of the chosen candidate");
  ExpectWrong(with("_label_cost\":-1", "_label_cost\":\"NaN\""),
              at + "_label_cost = NaN, expected a number: minus the reward");
  ExpectWrong(with("_label_cost\":-1", "_label_cost\":NaN"),
              at + "expected a JSON object, but parse error at line 1, column 16");
  ExpectWrong("--strict " + with("\"_label_cost\":-1,", ""), at + "_label_cost is missing");
  ExpectWrong(with("\"p\":[0.4,0.6]", "\"p\":[0.4]"), at + "p = 1 numbers, expected 2 as in a");
  ExpectWrong(with("\"p\":[0.4,0.6]", "\"p\":[0.4,0.9]"),
              at + "sum of the probabilities = 1.3, expected 1");
  ExpectWrong(with("\"a\":[1,2]", "\"a\":[1,3]"), at + "a = 3, expected whole numbers from 1 to 2");
  ExpectWrong(with("_labelIndex\":0", "_labelIndex\":7"),
              at + "_labelIndex = 7, expected a whole number from 0 to 1");
  ExpectWrong("--strict " + with("\"_multi\"", "\"multi\""), at + "c._multi is missing");
  ExpectWrong(with("2021-07-29T10", "yesterday "), at + "Timestamp = ");
}

TEST_F(EvaluateTest, ReadsDsJsonOfOthers) {
  // As in Vowpal Wabbit's tests: no user, named features, event_id, `a` from 0 or from 1.
  const auto line = [](int id, int chosen, int base) {
    return fmt::format(
        R"({{"_label_cost":{},"_label_probability":0.5,"event_id":"{}","a":[{},{}],)"
        R"("c":{{"GUser":{{"major":"eng"}},"_multi":[{{"TAction":{{"topic":"sports","age":3}}}},)"
        R"({{"TAction":{{"topic":"news"}}}}]}},"p":[0.5,0.5]}})",
        chosen == 0 ? -1 : 0, id, chosen + base, 1 - chosen + base);
  };
  Json results[2];
  for (const int base : {0, 1}) {
    std::string log;
    for (int i = 0; i < 40; ++i) log += line(i, i % 2, base) + "\n";
    results[base] = RunJson("--log " + Write("vw.json", log) + " --policies logged,first,linucb");
    EXPECT_EQ(results[base]["log"]["events"], 40);
    EXPECT_EQ(results[base]["log"]["dim"], 7);  // 3 names, the context, 3 crossings
    EXPECT_EQ(results[base]["log"]["order"], "log");
    EXPECT_EQ(Estimate(results[base], "first", "snips")["value"], 1);
    EXPECT_EQ(Estimate(results[base], "logged", "mean")["value"], 0.5);
  }
  EXPECT_EQ(results[0]["policies"], results[1]["policies"]);
  const Outcome wrong =
      Run("--action-base 1 --log " + Write("vw.json", line(1, 0, 0)) + " --policies logged");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("a = 0, expected whole numbers from 1 to 2"), std::string::npos);
}

// As the Open Bandit data: numbers, hashes, an index column without a name, a column for each item.
class CsvTest : public EvaluateTest {
 protected:
  CsvTest() {
    std::string rows =
        ",timestamp,item_id,position,click,score,user_feature_0,affinity_0,affinity_1\n";
    for (int i = 0; i < 200; ++i) {
      const int item = i % 4 == 0 ? 0 : 1;
      rows += fmt::format("{},2019-11-24 00:03:{:02}.44+00:00,{},{},{},{},{},{},0.5\n", i, i % 60,
                          item, 1 + i % 2, i % 8 == 0 ? 1 : 0, item == 0 ? 0.25 : 0.75,
                          i % 3 == 0 ? "cef" : "03a", i % 5);
    }
    log_ = Write("men.csv", rows);
    items_ = Write("items.csv", ",item_id,price,brand\n0,0,-0.67,ceca\n1,1,0.72,\"27,0d\"\n");
    flags_ = fmt::format(
        "--log {} --action-column item_id --reward-column click --propensity-column score "
        "--time-column timestamp --user-column user_feature_0 ",
        log_);
  }
  std::string log_, items_, flags_;
};

TEST_F(CsvTest, ReadsNamedColumns) {
  const Json plain = RunJson(flags_ + "--policies logged,first,uniform,linucb");
  EXPECT_EQ(plain["log"]["events"], 200);
  EXPECT_EQ(plain["log"]["users"], 2);
  EXPECT_EQ(plain["log"]["dim"], 2);  // one an action
  EXPECT_EQ(plain["log"]["all_probabilities"], false);
  EXPECT_DOUBLE_EQ(Estimate(plain, "logged", "mean")["value"], 25.0 / 200);
  EXPECT_DOUBLE_EQ(Estimate(plain, "first", "ips")["value"], 25 * 4 / 200.0);
  EXPECT_NEAR(Estimate(plain, "uniform", "snips")["value"], 0.25, 1e-12);
  const Json items = RunJson(flags_ + "--policies first --items " + items_);
  EXPECT_EQ(items["log"]["dim"], 3);  // price, two brands
  const Json all = RunJson(flags_ +
                           "--policies first --action-features affinity_ "
                           "--context-columns position,affinity_1 --items " +
                           items_);
  EXPECT_EQ(all["log"]["dim"], 3 + 1 + 2 * 2);
}

TEST_F(CsvTest, ChanceTablesApplyByGroup) {
  const std::string table =
      Write("table.csv", "group,action,probability\n1,0,1\n1,1,0\n2,0,0.5\n2,1,0.5\n");
  const Json json = RunJson(flags_ + "--group-column position --policies first,table:" + table);
  // The log chooses action 0 at position 1 only, where the table always chooses it.
  EXPECT_DOUBLE_EQ(Estimate(json, "table:" + table, "ips")["value"],
                   Estimate(json, "first", "ips")["value"]);
  EXPECT_NE(Estimate(json, "table:" + table, "snips")["value"],
            Estimate(json, "first", "snips")["value"]);
  ExpectWrong(flags_ + "--policies table:" + Write("t.csv", "action,probability\n0,-1\n"),
              "t.csv:2: probability = '-1', expected a number from 0 on");
  ExpectWrong(flags_ + "--policies table:" + Write("t.csv", "action,chance\n0,1\n"),
              "column = 'probability', expected a column of");
  ExpectWrong(flags_ + "--policies table:" + Write("t.csv", "action,probability\n7,1\n"),
              "t.csv: no candidate of event 1 has a probability");
}

TEST_F(CsvTest, SaysWhichCellIsWrong) {
  const std::string header = "action,reward,propensity,user\n";
  const auto log = [&](const std::string& rows) {
    return "--log " + Write("log.csv", header + rows);
  };
  const std::string at = directory_ + "/log.csv:3: ";
  for (const char* bad : {"0", "1.5", "nan", "", "much"}) {
    ExpectWrong(
        log(fmt::format("a,1,0.5,u\nb,0,{},u\n", bad)),
        fmt::format("{}propensity = '{}', expected a number above 0 and at most 1", at, bad));
  }
  for (const char* bad : {"nan", "inf", "", "1e99"}) {
    ExpectWrong(log(fmt::format("a,1,0.5,u\nb,{},0.5,u\n", bad)),
                fmt::format("{}reward = '{}', expected a number within ±1e15", at, bad));
  }
  ExpectWrong("--strict " + log("a,1,0.5,u\nb,0,0.5\n"),
              at + "3 fields, expected 4 as in the header");
  ExpectWrong("--strict " + log("a,1,0.5,u\nb,0,0.5,\"u\n"), at + "a quoted field is never closed");
  ExpectWrong(log("a,1,0.5,u\n") + " --action-column item",
              "--action-column = 'item', expected a column of " + directory_ +
                  "/log.csv: action, reward, propensity, user");
  ExpectWrong(log("a,1,0.5,u\n") + " --time-column when", "--time-column = 'when'");
  ExpectWrong(log("a,1,0.5,u\nz,1,0.5,u\n") + " --item-column id --items " +
                  Write("items.csv", "id,x\na,1\n"),
              at + "action = 'z', expected an action of the items file");
  ExpectWrong(log(""), "log.csv has no rows");
}

TEST_F(EvaluateTest, RejectsWhatCannotBeEvaluated) {
  ExpectWrong("", "--log is required");
  ExpectWrong("--log " + directory_ + "/none.json", "none.json does not exist");
  ExpectWrong("--log " + directory_, "has no files decisions-*.json");
  const std::string garbage = Write("garbage.json", "\x01\x02garbage\nmore\n");
  ExpectWrong("--log " + garbage, "none of 2 lines can be used; the first: " + garbage + ":1: ");
  ExpectWrong("--log " + Write("empty.json", ""), "has no lines");
  const std::string log = "--log " + Write("log.json", Log(50));
  ExpectWrong(log + " --policies nobody", "--policies: ");
  ExpectWrong(log + " --policies oracle-greedy", "--policies: ");
  ExpectWrong(log + " --policies table:none.csv", "none.csv");
  ExpectWrong(log + " --confidence 2", "--confidence = 2, expected a number from 0.5 to 0.9999");
  ExpectWrong(log + " --reward-max 0.5", "--reward-max = 0.5, expected at least 1, the reward of");
  ExpectWrong(log + " --min-propensity 0.5", "--min-propensity = 0.5, expected");
  ExpectWrong(log + " --floor 2", "--floor = '2', expected a number from 0 to 1");
  ExpectWrong(log + " --learn some", "--learn = 'some', expected all or accepted");
  ExpectWrong(log + " --order size", "--order = 'size', expected time or log");
  ExpectWrong(log + " --input xml", "--input = 'xml', expected dsjson or csv");
  ExpectWrong(log + " --resamples 1", "--resamples = '1', expected a whole number from 10");
  ExpectWrong(log + " --format xml", "--format = 'xml'");
}

TEST_F(EvaluateTest, WritesAReport) {
  const std::string log = Write("log.json", Log(200));
  const std::string out = directory_ + "/report";
  const Outcome outcome =
      Run("--log " + log + " --policies logged,linucb --resamples 50 --out " + out);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("effective events"), std::string::npos);
  const std::string page = ReadFile(out + "/report.html").value();
  EXPECT_NE(page.find("codband evaluate --log"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(ReadFile(out + "/estimates.svg").value().find("linucb"), std::string::npos);
  EXPECT_EQ(Json::parse(ReadFile(out + "/results.json").value())["policies"].size(), 2u);
  const Outcome csv = Run("--log " + log + " --policies logged,linucb --resamples 50 --format csv");
  EXPECT_EQ(csv.out, ReadFile(out + "/estimates.csv").value());
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 1 + 1 + 5);
}

TEST_F(EvaluateTest, WarnsOfThinSupport) {
  std::string log;
  for (int i = 0; i < 200; ++i) log += Line(i, i == 7 ? 0 : 1, 0.005, i % 2) + "\n";
  const Outcome outcome = Run("--log " + Write("log.json", log) + " --policies logged,first");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("first: thin support"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("logged: "), std::string::npos);
}

}  // namespace
}  // namespace codband
