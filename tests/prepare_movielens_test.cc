// codband prepare movielens.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/prepare_testing.h"

namespace codband {
namespace {

namespace fs = std::filesystem;

TEST_F(PrepareTest, MovieLensKeepsUsersWithEnoughRatings) {
  WriteMovieLens();
  const Outcome outcome = Prepare("movielens --dim 3 --candidates 6 --min-observations 20");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<PreparedEvent> events = Events();
  ASSERT_EQ(events.size(), 20U + 25U + 30U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_GE(events[i].user, 4U);
    EXPECT_EQ(events[i].items.size(), 6U);
    EXPECT_EQ(events[i].items[0],
              1 + (static_cast<std::uint64_t>(events[i].time) / 1000 * 7 + events[i].user) % 60);
    if (i > 0) {
      EXPECT_GE(events[i].time, events[i - 1].time);
    }
  }
  // Zero mean and unit variance.
  std::array<double, 3> sums{};
  std::array<double, 3> squares{};
  const std::vector<std::string> lines = Split(Text("features.tsv"), '\n');
  ASSERT_EQ(lines.size(), 60U);
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = Split(line, '\t');
    for (std::size_t i = 0; i < 3; ++i) {
      sums[i] += std::stod(fields.at(i + 1));
      squares[i] += std::stod(fields.at(i + 1)) * std::stod(fields.at(i + 1));
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(sums[i], 0, 1e-6);
    EXPECT_NEAR(squares[i], 60, 1e-5);
  }
  EXPECT_NE(Text("tags.tsv").find("\n2\thorror\t1\n"), std::string::npos);
  EXPECT_EQ(Run("replay results/a --policies random,codband").exit_code, 0);
}

TEST_F(PrepareTest, MovieLensRatingsBelowThePositiveThresholdAreNotEvents) {
  WriteMovieLens();
  ASSERT_EQ(Prepare("movielens --dim 3 --candidates 6 --min-observations 30 --positive-rating 4")
                .exit_code,
            0);
  EXPECT_EQ(Events().size(), 15U);
  ASSERT_EQ(Prepare("movielens --dim 3 --min-observations 10 --max-events 33", "b").exit_code, 0);
  EXPECT_EQ(Split(Text("events.tsv", "b"), '\n').size(), 33U);
  fs::remove_all(root_ / "results" / "a");
  fs::remove_all(root_ / "results" / "b");
  ExpectRefused(Prepare("movielens"), {"--min-observations = 3000", "at most 30"});
}

}  // namespace
}  // namespace codband
