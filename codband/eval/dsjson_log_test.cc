#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "codband/eval/log_files_testing.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {
namespace {

// Two candidates with plain features; the second one was chosen with probability 0.25.
constexpr const char* kLine =
    R"({"_label_cost":-2,"_label_probability":0.25,"_labelIndex":1,"EventId":"e1",)"
    R"("Timestamp":"1970-01-01T00:00:01Z","a":[2,1],"p":[0.25,0.75],)"
    R"("c":{"User":{"id":"ann"},"_multi":[{"_tag":"x","Features":{"f0":1}},)"
    R"({"_tag":"y","Features":{"f1":0.5,"f2":2}}]}})";

class DsJsonLogTest : public LogFilesTest {
 protected:
  Result<LoggedData> Read(const std::string& content, const DsJsonOptions& options = {},
                          BadLines leave_out = BadLines::kForeign) const {
    return ReadDsJsonLog({.files = {Write("log.json", content)}, .leave_out = leave_out}, options);
  }

  // kLine with one part replaced.
  static std::string With(const std::string& from, const std::string& to) {
    std::string line = kLine;
    const std::size_t at = line.find(from);
    EXPECT_NE(at, line.npos) << from;
    return line.replace(at, from.size(), to);
  }

  std::string Problem(const std::string& line) const {
    const auto read = Read(line + "\n", {}, BadLines::kFail);
    if (read.ok()) return "";
    const std::string& message = read.status().message();
    const std::string at = directory_ + "/log.json:1: ";
    EXPECT_EQ(message.rfind(at, 0), 0U) << message;
    return message.substr(std::min(at.size(), message.size()));
  }
};

// Tiny candidates with many columns: a few megabytes of text would be gigabytes of features.
TEST_F(DsJsonLogTest, ALogThatNeedsTooMuchMemoryIsRefused) {
  std::string many = R"({"x0":1})";
  for (int i = 1; i < 200; ++i) many += fmt::format(R"(,{{"x{}":1}})", i);
  const auto line = [](const std::string& candidates) {
    return fmt::format(
        R"({{"_label_cost":0,"_label_probability":1,"_labelIndex":0,"c":{{"_multi":[{}]}}}})"
        "\n",
        candidates);
  };
  std::string log = line(many);
  for (int i = 1; i < 6; ++i) {
    std::string small = fmt::format("{}", i);
    for (int j = 1; j < 200; ++j) small += fmt::format(",{}", i);
    log += line(small);
  }
  LogSource source{.files = {Write("log.json", log)}};
  ASSERT_TRUE(ReadDsJsonLog(source, {}).ok());
  source.limits.memory_bytes = 1 << 20;  // three decisions of 200 candidates and columns
  const auto rows = ReadDsJsonLog(source, {});
  EXPECT_NE(rows.status().message().find("log.json:4: the log up to here takes more than 1 MiB"),
            std::string::npos)
      << rows.status().message();
  source.limits.memory_bytes = 50'000;
  EXPECT_NE(ReadDsJsonLog(source, {}).status().message().find("log.json:"), std::string::npos);
  source.limits = {.line_bytes = 1000};
  EXPECT_NE(ReadDsJsonLog(source, {}).status().message().find("expected at most 1000"),
            std::string::npos);
}

TEST_F(DsJsonLogTest, ReadingCanBeEndedAtAnyTime) {
  LogSource source{.files = {Write("log.json", std::string(kLine) + "\n" + kLine + "\n")}};
  int calls = 0;
  source.limits.between = [&] { ++calls; };
  ASSERT_TRUE(ReadDsJsonLog(source, {}).ok());
  ASSERT_GT(calls, 3);
  for (int left = 0; left < calls; ++left) {
    int count = left;
    source.limits.between = [&] {
      if (count-- == 0) throw std::runtime_error("enough");
    };
    EXPECT_THROW((void)ReadDsJsonLog(source, {}), std::runtime_error);
  }
}

TEST_F(DsJsonLogTest, LineBecomesADecisionWithItsCandidates) {
  const auto read = Read(std::string(kLine) + "\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const LoggedDecisions& log = read.value().log;
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log.dim(), 3U);
  EXPECT_EQ(log.event(0).chosen, 1U);
  EXPECT_EQ(log.event(0).reward, 2);
  EXPECT_EQ(log.event(0).propensity, 0.25);
  EXPECT_EQ(log.event(0).time_ms, 1000);
  EXPECT_EQ(log.users.name(static_cast<std::uint32_t>(log.event(0).user)), "ann");
  EXPECT_EQ(log.action_names.name(log.actions(0)[1]), "y");
  EXPECT_EQ(log.probabilities(0)[0], 0.75);
  EXPECT_EQ(log.arms(0).features[3 + 2], 2);
  EXPECT_TRUE(read.value().summary.timed);
  EXPECT_EQ(read.value().summary.features, "3 as logged");
}

TEST_F(DsJsonLogTest, ChosenActionIsToldByIndexByActionOrByTheFirstOfA) {
  for (const char* label : {R"("_labelIndex":1,)", R"("_label_Action":2,)", ""}) {
    const auto read = Read(With(R"("_labelIndex":1,)", label));
    ASSERT_TRUE(read.ok()) << label << read.status().message();
    EXPECT_EQ(read.value().log.event(0).chosen, 1U) << label;
  }
}

TEST_F(DsJsonLogTest, ActionsCountFromZeroWhereAZeroIsAmongThem) {
  const auto read = Read(With(R"("a":[2,1])", R"("a":[1,0])"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().log.probabilities(0)[1], 0.25);
  EXPECT_FALSE(Read(With(R"("a":[2,1])", R"("a":[1,0])"), {.action_base = 1}).ok());
}

TEST_F(DsJsonLogTest, OtherFeaturesAreHashedByName) {
  const auto read = Read(With(R"({"f0":1})", R"({"genre":"rock"})"), {.dim = 8});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().log.dim(), 8U);
  EXPECT_EQ(read.value().summary.features, "8 hashed by name");
}

// Under the context "morning" the first action is good, else the second: told apart only by the
// crossings of context and action.
TEST_F(DsJsonLogTest, ContextsAreCrossedWithActions) {
  const auto read =
      Read(With(R"("User":{"id":"ann"})", R"("User":{"id":"ann"},"Context":[{"time":"morning"}])"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const LoggedDecisions& log = read.value().log;
  EXPECT_EQ(read.value().summary.features, "7 by name, 3 of them crossings");
  EXPECT_EQ(log.users.name(0), "ann");
  // The first candidate: f0, the context, and their crossing; all with value 1.
  const std::span<const double> first = log.arms(0).arm(0);
  EXPECT_EQ(std::ranges::count(first, 1.0), 3);
  EXPECT_EQ(std::ranges::count(first, 0.0), 4);
}

TEST_F(DsJsonLogTest, ListsAreReadAsTheServerReadsThem) {
  const auto read =
      Read(With(R"({"f0":1})", R"({"tags":["a","b"],"e":[0.5,2],"parts":[{"x":1},{"y":3}]})"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().summary.features, "8 by name");
  const std::span<const double> first = read.value().log.arms(0).arm(0);
  std::vector<double> values(first.begin(), first.end());
  std::ranges::sort(values);
  EXPECT_EQ(values, (std::vector<double>{0, 0, 0.5, 1, 1, 1, 2, 3}));
}

TEST_F(DsJsonLogTest, UserIsFoundByItsPath) {
  const auto read =
      Read(With(R"("User":{"id":"ann"})", R"("Who":{"x":{"y":7}})"), {.user_field = "Who.x.y"});
  EXPECT_EQ(read.value().log.users.name(0), "7");
  // A path that leads nowhere: one user for all.
  EXPECT_EQ(Read(kLine, {.user_field = "Who.x"}).value().log.users.name(0), "");
}

TEST_F(DsJsonLogTest, LinesThatAreNoDecisionAreCounted) {
  const std::string line = kLine;
  const auto read = Read(line + "\n\n  \ngarbage\n" + line + "\n{}\n" + line.substr(0, 50));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().log.size(), 1U);
  EXPECT_EQ(read.value().summary.lines, 5U);
  EXPECT_EQ(read.value().summary.skipped, 4U);
  EXPECT_EQ(read.value().summary.duplicates, 1U);
}

TEST_F(DsJsonLogTest, LineWithoutATimeLeavesTheLogUntimed) {
  const std::string without = With(R"("Timestamp":"1970-01-01T00:00:01Z",)", "");
  EXPECT_FALSE(Read(without).value().summary.timed);
}

TEST_F(DsJsonLogTest, ProblemsNameTheFieldTheValueAndWhatWasExpected) {
  EXPECT_EQ(Problem("[1]"), "'[1]', expected a JSON object");
  EXPECT_EQ(Problem(With(R"("_multi")", R"("multi")")),
            "c._multi is missing, expected a list of at least 1 candidate");
  EXPECT_EQ(Problem(With(R"("a":[2,1])", R"("a":"x")")), "a = x, expected a list of actions");
  EXPECT_EQ(Problem(With(R"("a":[2,1])", R"("a":[2,-1])")), "a = -1, expected whole numbers");
  EXPECT_EQ(Problem(With(R"("a":[2,1])", R"("a":[2,2])")), "a = [2,2], expected each action once");
  EXPECT_EQ(Problem(With(R"("p":[0.25,0.75])", R"("p":{})")),
            "p = {}, expected a list of probabilities");
  EXPECT_EQ(Problem(With(R"("p":[0.25,0.75])", R"("p":[0.25,"x"])")),
            "p = x, expected numbers from 0 to 1");
  EXPECT_EQ(Problem(With(R"("_labelIndex":1)", R"("_labelIndex":0,"_label_Action":2)")),
            "_label_Action = 2, expected 1 as _labelIndex says");
  EXPECT_EQ(Problem(With(R"("_label_cost":-2)", R"("_label_cost":null)")),
            "_label_cost = null, expected a number: minus the reward");
}

TEST_F(DsJsonLogTest, InvalidValuesFailUnlessAskedFor) {
  std::string invalid = With(R"("e1")", R"("e2")");
  invalid.replace(invalid.find("-2"), 2, "1e99");
  const std::string content = std::string(kLine) + "\n" + invalid + "\n";
  const auto strict = Read(content);
  ASSERT_FALSE(strict.ok());
  EXPECT_NE(strict.status().message().find("log.json:2: reward = "), std::string::npos)
      << strict.status().message();
  const auto lenient = Read(content, {}, BadLines::kAny);
  ASSERT_TRUE(lenient.ok()) << lenient.status().message();
  EXPECT_EQ(lenient.value().log.size(), 1U);
}

}  // namespace
}  // namespace codband::eval
