#include "codband/server/api/decision_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/file.h"

namespace codband::server {
namespace {

using OrderedJson = nlohmann::ordered_json;

engine::FinishedDecision Example() {
  return {.event_id = "e-1",
          .user = "ann",
          .time_ms = 1'627'552'800'999,
          .reward = 0.75,
          .context = R"([{"hour":7,"device":"phone"}])",
          .policy = "codband",
          .chosen = 1,
          .candidates = {{.id = "rock", .probability = 0.25, .features = {0.1F, 0, -2}},
                         {.id = "jazz", .probability = 0.125, .features = {0, 1, 0}},
                         {.id = "folk", .probability = 0.625, .features = {0, 0, 0}}}};
}

TEST(DsJsonTest, LineIsAsVowpalWabbitReadsIt) {
  EXPECT_EQ(ToDsJson(Example()),
            R"({"_label_cost":-0.75,"_label_probability":0.125,"_label_Action":2,"_labelIndex":1,)"
            R"("_original_label_cost":-0.75,"_skipLearn":false,"_defaulted":false,)"
            R"("Timestamp":"2021-07-29T10:00:00.999Z","Version":"1","EventId":"e-1",)"
            R"("a":[2,3,1],"p":[0.125,0.625,0.25],)"
            R"("c":{"User":{"id":"ann"},"Context":[{"hour":7,"device":"phone"}],"_multi":[)"
            R"({"_tag":"rock","Features":{"f0":0.1,"f2":-2}},)"
            R"({"_tag":"jazz","Features":{"f1":1}},{"_tag":"folk","Features":{}}]},)"
            R"("pdrop":0,"VWState":{"m":"codband"}})");
}

TEST(DsJsonTest, FieldsFollowTheDecision) {
  engine::FinishedDecision decision = Example();
  decision.reward = 0;
  decision.learned = false;
  decision.defaulted = true;
  decision.context.clear();
  decision.chosen = 2;
  const OrderedJson line = OrderedJson::parse(ToDsJson(decision));
  EXPECT_EQ(line["_label_cost"].dump(), "0");  // not -0
  EXPECT_EQ(line["_skipLearn"], true);
  EXPECT_EQ(line["_defaulted"], true);
  EXPECT_EQ(line["_label_Action"], 3);
  EXPECT_EQ(line["_labelIndex"], 2);
  EXPECT_EQ(line["_label_probability"], 0.625);
  EXPECT_EQ(line["a"], OrderedJson({3, 1, 2}));
  EXPECT_FALSE(line["c"].contains("Context"));
}

TEST(DsJsonTest, ContextCannotGiveCommandsToVowpalWabbit) {
  engine::FinishedDecision decision = Example();
  decision.context =
      R"({"_label_cost":5,"_multi":[1],"deep":{"_tag":"x"},"tags":["a","_b",3,[1,2]],"n":[1,2.5,null]})";
  const OrderedJson context = OrderedJson::parse(ToDsJson(decision))["c"]["Context"];
  EXPECT_EQ(context.dump(), R"({"x_label_cost":5,"x_multi":[1],"deep":{"x_tag":"x"},)"
                            R"("tags":{"a":true,"x_b":true,"2":3,"3":[1,2]},"n":[1,2.5,null]})");
  decision.context = "no JSON";
  EXPECT_EQ(OrderedJson::parse(ToDsJson(decision))["c"]["Context"],
            OrderedJson({{"text", "no JSON"}}));
}

TEST(DsJsonTest, TextIsEscapedAndBadUtf8Replaced) {
  engine::FinishedDecision decision = Example();
  decision.event_id = "a\"b\n";
  decision.user = "\xff";
  const std::string line = ToDsJson(decision);
  EXPECT_EQ(line.find('\n'), line.npos);
  const OrderedJson parsed = OrderedJson::parse(line);
  EXPECT_EQ(parsed["EventId"], "a\"b\n");
  EXPECT_EQ(parsed["c"]["User"]["id"], "\xEF\xBF\xBD");
}

TEST(DsJsonTest, ProbabilitiesKeepAllTheirDigits) {
  engine::FinishedDecision decision = Example();
  decision.candidates[0].probability = 1.0 / 3;
  EXPECT_EQ(OrderedJson::parse(ToDsJson(decision))["p"][2].get<double>(), 1.0 / 3);
}

class DecisionLogTest : public testing::Test {
 protected:
  DecisionLogTest() {
    std::string name = testing::TempDir() + "/codband_log_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    options_ = {.directory = directory_ + "/log", .now_ms = [] { return 1'627'552'800'999; }};
  }
  ~DecisionLogTest() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  // The event ids of all files in order.
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const std::string& name : Files()) {
      std::string text = ReadFile(options_.directory / name).value();
      EXPECT_TRUE(text.ends_with('\n'));
      for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.erase(0, end + 1)) {
        events.push_back(OrderedJson::parse(text.substr(0, end))["EventId"]);
      }
    }
    return events;
  }

  static engine::FinishedDecision Event(int number) {
    engine::FinishedDecision decision = Example();
    decision.event_id = std::to_string(number);
    return decision;
  }

  std::string directory_;
  DecisionLogOptions options_;
};

TEST_F(DecisionLogTest, WritesEveryDecisionInOrderToAFileNamedByTime) {
  auto log = DecisionLog::Open(options_).value();
  EXPECT_TRUE(Files().empty());  // nothing before the first line
  for (int i = 0; i < 3; ++i) log->Append(Event(i));
  log->Stop();
  EXPECT_EQ(Files(), std::vector<std::string>{"decisions-20210729-100000-000.json"});
  EXPECT_EQ(Events(), (std::vector<std::string>{"0", "1", "2"}));
  const DecisionLogStats stats = log->Stats();
  EXPECT_EQ(stats.written, 3U);
  EXPECT_EQ(stats.bytes, std::filesystem::file_size(options_.directory / Files()[0]));
  EXPECT_EQ(stats.dropped + stats.failed + stats.queue, 0U);
  EXPECT_TRUE(stats.last_error.ok());
  log->Append(Event(3));
  EXPECT_EQ(log->Stats().dropped, 1U);
}

// They wait for their rewards when a server is started with a log for the first time.
TEST_F(DecisionLogTest, DecisionsOfBeforeThereWasALogAreLeftOut) {
  auto log = DecisionLog::Open(options_).value();
  engine::FinishedDecision before = Event(0);
  before.candidates.clear();
  log->Append(before);
  log->Append(Event(1));
  log->Stop();
  EXPECT_EQ(Events(), std::vector<std::string>{"1"});
  EXPECT_EQ(log->Stats().dropped + log->Stats().failed, 0U);
}

TEST_F(DecisionLogTest, DestructionWritesWhatWaits) {
  DecisionLog::Open(options_).value()->Append(Event(7));
  EXPECT_EQ(Events(), std::vector<std::string>{"7"});
}

TEST_F(DecisionLogTest, RotatesBySizeAndKeepsTheNewest) {
  const std::uint64_t line = ToDsJson(Event(0)).size() + 1;
  options_.max_file_bytes = 3 * line;
  options_.max_files = 2;
  {
    auto log = DecisionLog::Open(options_).value();
    for (int i = 0; i < 10; ++i) log->Append(Event(i));
  }
  EXPECT_EQ(Files(), (std::vector<std::string>{"decisions-20210729-100000-002.json",
                                               "decisions-20210729-100000-003.json"}));
  EXPECT_EQ(Events(), (std::vector<std::string>{"6", "7", "8", "9"}));
  for (const std::string& name : Files()) {
    EXPECT_LE(std::filesystem::file_size(options_.directory / name), 3 * line);
  }
}

TEST_F(DecisionLogTest, RestartBeginsANewFileAfterAllOthersEvenIfTheClockWentBack) {
  DecisionLog::Open(options_).value()->Append(Event(0));
  options_.now_ms = [] { return 1'000'000'000'000; };
  DecisionLog::Open(options_).value()->Append(Event(1));
  options_.now_ms = [] { return 1'700'000'000'000; };
  DecisionLog::Open(options_).value()->Append(Event(2));
  EXPECT_EQ(Files(), (std::vector<std::string>{"decisions-20210729-100000-000.json",
                                               "decisions-20210729-100000-001.json",
                                               "decisions-20231114-221320-000.json"}));
  EXPECT_EQ(Events(), (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(DecisionLogTest, FilesOfOthersAreLeftAlone) {
  options_.max_files = 1;
  ASSERT_TRUE(EnsureDirectory(options_.directory).ok());
  for (const char* name :
       {"decisions-old.json", "decisions-20210101-000000-000.json.gz", "notes"}) {
    ASSERT_TRUE(WriteFileDurably(options_.directory / name, "x").ok());
  }
  DecisionLog::Open(options_).value()->Append(Event(0));
  EXPECT_EQ(Files().size(), 4U);
}

TEST_F(DecisionLogTest, AFullQueueBlocksSoThatNothingIsLost) {
  options_.queue = 1;
  auto log = DecisionLog::Open(options_).value();
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 200; ++i) log->Append(Event(w * 1000 + i));
    });
  }
  for (std::thread& writer : writers) writer.join();
  log->Stop();
  EXPECT_EQ(log->Stats().written, 800U);
  EXPECT_EQ(Events().size(), 800U);
}

TEST_F(DecisionLogTest, DroppedDecisionsAreCounted) {
  options_.queue = 1;
  options_.drop_when_full = true;
  auto log = DecisionLog::Open(options_).value();
  for (int i = 0; i < 5000; ++i) log->Append(Event(i));
  log->Stop();
  EXPECT_EQ(log->Stats().written + log->Stats().dropped, 5000U);
  EXPECT_EQ(Events().size(), log->Stats().written);
}

TEST_F(DecisionLogTest, AFullDiskIsCountedAndLaterLinesAreWrittenAgain) {
  // The limit on the size of a file stands in for the end of the disk.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const std::uint64_t line = ToDsJson(Event(0)).size() + 1;
  auto log = DecisionLog::Open(options_).value();
  const auto wait_for = [&](auto done) {
    while (!done(log->Stats())) std::this_thread::yield();
  };
  log->Append(Event(0));
  wait_for([](const DecisionLogStats& stats) { return stats.written == 1; });
  const rlimit small{.rlim_cur = line + line / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  log->Append(Event(1));
  wait_for([](const DecisionLogStats& stats) { return stats.failed == 1; });
  EXPECT_EQ(log->Stats().last_error.code(), StatusCode::kIoError);
  EXPECT_NE(log->Stats().last_error.message().find("decisions-2021"), std::string::npos);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  log->Append(Event(2));
  log->Stop();
  EXPECT_TRUE(log->Stats().last_error.ok());
  EXPECT_EQ(Events(), (std::vector<std::string>{"0", "2"}));  // no half line between them
}

TEST_F(DecisionLogTest, DirectoryThatCannotBeMadeIsAnError) {
  options_.directory = "/proc/nothing";
  EXPECT_FALSE(DecisionLog::Open(options_).ok());
}

}  // namespace
}  // namespace codband::server
