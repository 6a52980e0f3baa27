#include "codband/experiments/stress_cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace codband::experiments {
namespace {

TEST(StressCellsTest, EveryPopulationCanBeMade) {
  for (const bool quick : {false, true}) {
    for (const StressCell& cell : StressCells(quick)) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const auto environment = sim::MakeSynthetic(cell.environment, seed);
        EXPECT_TRUE(environment.ok()) << cell.name << ": " << environment.status().message();
      }
    }
  }
}

TEST(StressCellsTest, CellsHaveNamesOfTheirOwnAndSayWhatIsChanged) {
  for (const bool quick : {false, true}) {
    std::set<std::string> names;
    std::set<std::string> changes;
    for (const StressCell& cell : StressCells(quick)) {
      EXPECT_TRUE(names.insert(cell.name).second) << cell.name;
      EXPECT_TRUE(changes.insert(cell.changed).second) << cell.changed;
    }
    EXPECT_EQ(names.count("base"), 1U);
    EXPECT_EQ(changes.count(quick ? "120 users, 200 rounds" : "300 users, 600 rounds"), 1U);
  }
}

TEST(StressCellsTest, NoCellCostsMuchMoreVisitsThanTheBase) {
  const std::vector<StressCell> cells = StressCells(false);
  const auto visits = [](const StressCell& cell) {
    return cell.environment.users * cell.environment.rounds;
  };
  for (const StressCell& cell : cells) EXPECT_LE(visits(cell), 3 * visits(cells[0])) << cell.name;
}

TEST(StressCellsTest, QuickCellsOfFewVisitsHaveAsFew) {
  const auto few = [](bool quick) {
    const std::vector<StressCell> cells = StressCells(quick);
    return *std::ranges::find(cells, "few-visits", &StressCell::name);
  };
  EXPECT_EQ(few(false).environment.rounds, few(true).environment.rounds);
  EXPECT_GT(few(false).environment.users, few(true).environment.users);
}

}  // namespace
}  // namespace codband::experiments
