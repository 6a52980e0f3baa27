#include "codband/features/crossings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "codband/base/random.h"

namespace codband::features {
namespace {

CrossingRules Rules(std::string_view text) {
  auto rules = CrossingRules::Parse(text);
  EXPECT_TRUE(rules.ok()) << rules.status().ToString();
  return rules.ok() ? std::move(rules).value() : CrossingRules();
}

TEST(CrossingRulesTest, AllNoneAndPairs) {
  EXPECT_TRUE(Rules("all").Allows("device=phone", "genre=jazz"));
  EXPECT_FALSE(Rules(" none ").Allows("device=phone", "genre=jazz"));
  const CrossingRules pairs = Rules("device:genre, hour:*,*:price");
  EXPECT_TRUE(pairs.Allows("device=phone", "genre=jazz"));
  EXPECT_FALSE(pairs.Allows("device=phone", "brand=x"));
  EXPECT_TRUE(pairs.Allows("hour", "brand=x"));
  EXPECT_TRUE(pairs.Allows("device=phone", "price"));
  EXPECT_FALSE(pairs.Allows("devices", "genre=jazz"));
  EXPECT_FALSE(pairs.Allows("device", ""));
  EXPECT_TRUE(pairs.Allows("hour", ""));
}

TEST(CrossingRulesTest, SaysWhatIsWrong) {
  for (const char* bad : {"", "device", "a:b,", ":b", "a:", "all, a:b"}) {
    const auto rules = CrossingRules::Parse(bad);
    ASSERT_FALSE(rules.ok()) << bad;
    EXPECT_NE(rules.status().message().find("device:genre"), std::string::npos);
  }
}

// The row is what the definition says: item + context + all products, each at its place.
TEST(CrossedContextTest, RowsAreWhatTheDefinitionSays) {
  for (const std::size_t columns : {6, 12, 24, 60}) {
    const ColumnLimits limits{.columns = columns};
    ColumnSpace space;
    std::vector<ColumnSpace::Addition> added;
    for (int i = 0; i < 9; ++i) {
      space.Admit(Side::kItem, "i" + std::to_string(i), limits, added);
    }
    for (int c = 0; c < 3; ++c) {
      space.Admit(Side::kContext, "c" + std::to_string(c), limits, added);
    }
    std::vector<NamedFeature> item, context;
    RandomStream random({7, columns}, 1);
    for (int i = 0; i < 9; i += 2) item.push_back({"i" + std::to_string(i), random.Uniform()});
    for (int c = 0; c < 3; ++c) context.push_back({"c" + std::to_string(c), random.Uniform()});
    Cells item_cells, context_cells;
    Resolve(space, limits, Side::kItem, item, item_cells);
    Resolve(space, limits, Side::kContext, context, context_cells);
    Compact(item_cells);
    Compact(context_cells);
    for (const Cell& i : item_cells) {
      for (const Cell& c : context_cells) space.AdmitCrossing(i.column, c.column, limits, added);
    }
    std::vector<double> expected(space.size());
    for (const Cell& i : item_cells) expected[i.column] += i.value;
    for (const Cell& c : context_cells) expected[c.column] += c.value;
    for (const Cell& i : item_cells) {
      for (const Cell& c : context_cells) {
        const auto place = space.CrossingPlace(i.column, c.column, limits);
        ASSERT_TRUE(place);
        expected[place->column] += place->sign * i.value * c.value;
      }
    }
    CrossedContext crossed;
    crossed.Set(space, limits, CrossingRules(), context_cells);
    std::vector<double> row(space.size());
    crossed.AddTo(row, item_cells);
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(row[i], expected[i], 1e-15) << columns << " " << i;
    }
    // A row of before the last columns were added has the others.
    std::vector<double> shorter(4);
    crossed.AddTo(shorter, item_cells);
    for (std::size_t i = 0; i < shorter.size(); ++i) EXPECT_NEAR(shorter[i], expected[i], 1e-15);
  }
}

TEST(CrossedContextTest, TellsWhatHasNoPlaceYet) {
  const ColumnLimits limits{.columns = 40};
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"genre=jazz", "brand=x", "e[0]"}) {
    space.Admit(Side::kItem, name, limits, added);
  }
  space.Admit(Side::kContext, "device=phone", limits, added);
  const Cells context = {{3, 1}};
  CrossedContext crossed;
  crossed.Set(space, limits, Rules("device:genre"), context);
  EXPECT_TRUE(crossed.misses_any());
  EXPECT_TRUE(crossed.Misses(0));
  EXPECT_FALSE(crossed.Misses(1));
  space.AdmitCrossing(0, 3, limits, added);
  crossed.Set(space, limits, Rules("device:genre"), context);
  EXPECT_FALSE(crossed.misses_any());
  // Without room, places in arrays are not crossed unless a rule names them.
  ColumnLimits full{.columns = 4};
  crossed.Set(space, full, CrossingRules(), context);
  EXPECT_FALSE(crossed.Misses(2));
  EXPECT_TRUE(crossed.Misses(1));
}

}  // namespace
}  // namespace codband::features
