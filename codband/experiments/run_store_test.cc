#include "codband/experiments/run_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "codband/base/file.h"

namespace codband::experiments {
namespace {

class RunStoreTest : public testing::Test {
 protected:
  RunStoreTest() {
    std::string name = testing::TempDir() + "/codband_runs_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~RunStoreTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(RunStoreTest, RunComesBackExactly) {
  sim::RunResult run;
  run.regret = {1.0 / 3, 2e-17, 12345.678901234567};
  run.changes = {.true_changes = 5,
                 .detected = 4,
                 .false_alarms = 3,
                 .stable_steps = 900,
                 .delays = {1, 2, 30}};
  run.clusters = {.same_both = 1, .same_model = 2, .same_truth = 3};
  run.models = 7;
  run.us_per_step = 1.25;
  run.user_models = {{1, kNoModel}, {1, 2}};
  run.true_changes = {{0, 17}, {1, 90}};
  const RunStore store(directory_);
  EXPECT_FALSE(store.Load("a").has_value());
  ASSERT_TRUE(store.Save("a", run).ok());
  const auto loaded = store.Load("a");
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->regret, run.regret);
  EXPECT_EQ(loaded->changes.delays, run.changes.delays);
  EXPECT_EQ(loaded->changes.stable_steps, run.changes.stable_steps);
  EXPECT_EQ(loaded->clusters.same_truth, 3U);
  EXPECT_EQ(loaded->models, 7U);
  EXPECT_EQ(loaded->us_per_step, 1.25);
  EXPECT_EQ(loaded->user_models, run.user_models);
  EXPECT_EQ(loaded->true_changes, run.true_changes);
  EXPECT_FALSE(store.Load("b").has_value());
}

TEST_F(RunStoreTest, DamagedFileCountsAsNotPlayed) {
  const RunStore store(directory_);
  ASSERT_TRUE(store.Save("a", sim::RunResult{}).ok());
  const auto path = std::filesystem::directory_iterator(directory_)->path();
  for (const char* content :
       {"", "{", "{\"identity\": \"a\"}", "{\"identity\": \"other\", \"run\": {}}",
        "{\"identity\": \"a\", \"run\": {\"regret\": \"x\"}}"}) {
    ASSERT_TRUE(WriteFileDurably(path, content).ok());
    EXPECT_FALSE(store.Load("a").has_value()) << content;
  }
}

TEST_F(RunStoreTest, FileCutShortAnywhereCountsAsNotPlayed) {
  const RunStore store(directory_);
  sim::RunResult run;
  run.regret = {1, 2};
  run.user_models = {{1, 2}, {3, 4}};
  ASSERT_TRUE(store.Save("a", run).ok());
  const auto path = std::filesystem::directory_iterator(directory_)->path();
  const std::string whole = ReadFile(path).value();
  // The last two bytes are the closing brace and the line break.
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    ASSERT_TRUE(WriteFileDurably(path, whole.substr(0, length)).ok());
    EXPECT_FALSE(store.Load("a").has_value()) << length;
  }
}

TEST_F(RunStoreTest, FileOfAnotherIdentityUnderTheSameNameIsNotTaken) {
  const RunStore store(directory_);
  ASSERT_TRUE(store.Save("a", sim::RunResult{}).ok());
  const auto of_a = std::filesystem::directory_iterator(directory_)->path();
  const std::string content = ReadFile(of_a).value();
  std::filesystem::remove(of_a);
  ASSERT_TRUE(store.Save("b", sim::RunResult{}).ok());
  const auto of_b = std::filesystem::directory_iterator(directory_)->path();
  EXPECT_NE(of_a, of_b);
  ASSERT_TRUE(WriteFileDurably(of_b, content).ok());
  EXPECT_FALSE(store.Load("b").has_value());
}

TEST_F(RunStoreTest, SavingAgainReplacesTheRun) {
  const RunStore store(directory_);
  sim::RunResult run;
  run.models = 1;
  ASSERT_TRUE(store.Save("a", run).ok());
  run.models = 2;
  ASSERT_TRUE(store.Save("a", run).ok());
  EXPECT_EQ(store.Load("a")->models, 2U);
}

TEST_F(RunStoreTest, DirectoryThatIsGoneIsAnErrorOfSavingAndNoneOfLoading) {
  const RunStore store(directory_ + "/gone");
  EXPECT_FALSE(store.Load("a").has_value());
  EXPECT_EQ(store.Save("a", sim::RunResult{}).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace codband::experiments
