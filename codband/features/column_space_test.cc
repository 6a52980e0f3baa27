#include "codband/features/column_space.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace codband::features {
namespace {

using Kind = ColumnSpace::Kind;
constexpr ColumnLimits kSmall{.columns = 8};

ColumnSpace Repeat(const std::vector<ColumnSpace::Addition>& additions) {
  ColumnSpace space;
  for (const auto& addition : additions) {
    const Status status = space.Append(addition);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return space;
}

void ExpectSame(const ColumnSpace& a, const ColumnSpace& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.Additions(), b.Additions());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.NameOf(i), b.NameOf(i));
    EXPECT_EQ(a.column(i).hash, b.column(i).hash);
  }
  EXPECT_EQ(a.own(), b.own());
  EXPECT_EQ(a.sharers().size(), b.sharers().size());
}

TEST(ColumnSpaceTest, ColumnsComeInTheOrderOfTheirNamesAndStay) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"price", "genre=jazz", "price", "genre=rock"}) {
    space.Admit(Side::kItem, name, kSmall, added);
  }
  EXPECT_EQ(added.size(), 3u);
  EXPECT_EQ(space.Find(Side::kItem, "price"), 0u);
  EXPECT_EQ(space.Find(Side::kItem, "genre=jazz"), 1u);
  EXPECT_EQ(space.Find(Side::kItem, "genre=rock"), 2u);
  EXPECT_EQ(space.Find(Side::kItem, "genre"), std::nullopt);
  ExpectSame(space, Repeat(added));
}

TEST(ColumnSpaceTest, TheSameNameOnTwoSidesIsTwoColumns) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const Side side : {Side::kItem, Side::kContext, Side::kUser}) {
    space.Admit(side, "age", kSmall, added);
  }
  EXPECT_EQ(space.Find(Side::kItem, "age"), 0u);
  EXPECT_EQ(space.Find(Side::kContext, "age"), 1u);
  EXPECT_EQ(space.Find(Side::kUser, "age"), 2u);
}

TEST(ColumnSpaceTest, CrossingsHaveColumnsAndNames) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  space.Admit(Side::kItem, "genre=jazz", kSmall, added);
  space.Admit(Side::kContext, "device=phone", kSmall, added);
  EXPECT_EQ(space.CrossingPlace(0, 1, kSmall), std::nullopt);
  space.AdmitCrossing(0, 1, kSmall, added);
  space.AdmitCrossing(0, 1, kSmall, added);
  EXPECT_EQ(space.size(), 3u);
  EXPECT_EQ(space.FindCrossing(0, 1), 2u);
  EXPECT_EQ(space.NameOf(2), "genre=jazz × device=phone");
  ExpectSame(space, Repeat(added));
}

// Crossings leave room for names; names then fill the rest; what comes later shares.
TEST(ColumnSpaceTest, BeyondTheLimitsNamesShareColumns) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"a", "b", "c", "d", "e"}) space.Admit(Side::kItem, name, kSmall, added);
  space.Admit(Side::kContext, "x", kSmall, added);
  space.AdmitCrossing(0, 5, kSmall, added);  // 6 of 8 are taken: crossings stop here
  EXPECT_EQ(space.FindCrossing(0, 5), std::nullopt);
  EXPECT_TRUE(space.shares());
  EXPECT_EQ(space.size(), 6 + kSmall.shared());
  const auto crossed = space.CrossingPlace(0, 5, kSmall);
  ASSERT_TRUE(crossed);
  EXPECT_GE(crossed->column, 6u);

  EXPECT_EQ(space.PlaceOf(Side::kItem, "f", kSmall), std::nullopt);  // there is room for it
  space.Admit(Side::kItem, "f", kSmall, added);
  space.Admit(Side::kItem, "g", kSmall, added);
  EXPECT_EQ(space.Find(Side::kItem, "g"), kSmall.all() - 1);
  EXPECT_EQ(space.own(), 8u);
  for (int i = 0; i < 3000; ++i) {
    space.Admit(Side::kItem, "tag=" + std::to_string(i), kSmall, added);
  }
  EXPECT_EQ(space.size(), kSmall.all());
  EXPECT_EQ(space.sharers().size(), ColumnSpace::kMostSharers);
  EXPECT_EQ(space.sharers()[0].name, "tag=0");
  const auto place = space.PlaceOf(Side::kItem, "tag=2999", kSmall);
  ASSERT_TRUE(place);
  EXPECT_EQ(space.column(place->column).kind, Kind::kShared);
  ExpectSame(space, Repeat(added));
  // A larger limit gives a name that shared a column of its own.
  const ColumnLimits more{.columns = 16};
  EXPECT_EQ(space.PlaceOf(Side::kItem, "tag=1", more), std::nullopt);
}

// Names of requests and crossings leave a reserve to the catalogue, less what it has already.
TEST(ColumnSpaceTest, TheCatalogueHasAReserve) {
  const ColumnLimits limits{.columns = 16, .reserved = 4};
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  space.Admit(Side::kItem, "genre", limits, added);
  for (int i = 0; i < 20; ++i) {
    space.Admit(Side::kContext, "visit=" + std::to_string(i), limits, added);
    space.Admit(Side::kItem, "inline=" + std::to_string(i), limits, added, Source::kRequest);
    space.AdmitCrossing(0, 1, limits, added);
  }
  EXPECT_EQ(space.own(), 13u);
  EXPECT_EQ(space.requested(), 11u);
  ASSERT_EQ(space.sharers().size(), 2u);  // by what they have in common
  EXPECT_EQ(space.sharers()[0].name, "inline=*");
  EXPECT_EQ(space.sharers()[1].name, "visit=*");
  for (const char* name : {"a", "b", "c", "d"}) space.Admit(Side::kItem, name, limits, added);
  EXPECT_TRUE(space.Find(Side::kItem, "c"));
  EXPECT_FALSE(space.Find(Side::kItem, "d"));
  EXPECT_EQ(space.own(), 16u);

  const ColumnSpace again = Repeat(added);
  ExpectSame(space, again);
  EXPECT_EQ(again.requested(), space.requested());
  ByteWriter out;
  SaveAdditions(out, space.Additions());
  ByteReader in(out.bytes());
  EXPECT_EQ(Repeat(LoadAdditions(in)).requested(), space.requested());
  space.ReturnTo({});
  EXPECT_EQ(space.requested(), 0u);
}

TEST(ColumnSpaceTest, ListsWhatNamesHaveInCommon) {
  EXPECT_EQ(Listed("city=Bath=UK"), "city=*");
  EXPECT_EQ(Listed("embedding[12]"), "embedding[*]");
  EXPECT_EQ(Listed("[3]"), "[*]");
  EXPECT_EQ(Listed("tag=[x]"), "tag=*");
  EXPECT_EQ(Listed("hour"), "hour");
}

// Signs and places are even and independent: collisions cancel on average, of pairs too.
TEST(ColumnSpaceTest, SharedPlacesAreSpreadEvenly) {
  ColumnSpace space;
  const ColumnLimits limits{.columns = 128};
  std::vector<ColumnSpace::Addition> added;
  for (int i = 0; i < 60; ++i) space.Admit(Side::kItem, "i" + std::to_string(i), limits, added);
  for (int i = 0; i < 60; ++i) space.Admit(Side::kContext, "c" + std::to_string(i), limits, added);
  space.AdmitCrossing(0, 60, limits, added);
  ASSERT_EQ(space.shared_columns(), 32u);
  std::map<std::pair<std::uint32_t, double>, int> count;
  for (std::uint32_t i = 0; i < 60; ++i) {
    for (std::uint32_t c = 60; c < 120; ++c) {
      const auto place = space.CrossingPlace(i, c, limits);
      ASSERT_TRUE(place);
      ++count[{place->column, place->sign}];
    }
  }
  // 64 cells of mean 56.25. Pairs are only pairwise independent; three times the deviation of
  // independent ones is far from what a constant sign or a missing place would give.
  EXPECT_EQ(count.size(), 64u);
  for (const auto& [cell, pairs] : count) EXPECT_NEAR(pairs, 56.25, 40) << cell.first;
}

TEST(ColumnSpaceTest, ReturnsToAMark) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  space.Admit(Side::kItem, "a", kSmall, added);
  space.Admit(Side::kContext, "x", kSmall, added);
  const auto before = space.Additions();
  const ColumnSpace::Mark mark = space.mark();
  space.AdmitCrossing(0, 1, kSmall, added);
  for (int i = 0; i < 20; ++i) space.Admit(Side::kItem, std::to_string(i), kSmall, added);
  EXPECT_TRUE(space.shares());
  space.ReturnTo(mark);
  EXPECT_EQ(space.Additions(), before);
  EXPECT_FALSE(space.shares());
  EXPECT_EQ(space.FindCrossing(0, 1), std::nullopt);
  EXPECT_EQ(space.Find(Side::kItem, "3"), std::nullopt);
  EXPECT_FALSE(space.FindSharer(Side::kItem, "19"));
  space.Admit(Side::kItem, "3", kSmall, added);
  EXPECT_EQ(space.Find(Side::kItem, "3"), 2u);
}

TEST(ColumnSpaceTest, AdmitsLikeASpaceThatKnowsLess) {
  const ColumnLimits limits{.columns = 4, .reserved = 1};
  ColumnSpace less;
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (ColumnSpace* each : {&less, &space}) {
    each->Admit(Side::kItem, "genre", limits, added);
    each->Admit(Side::kContext, "hour", limits, added, Source::kRequest);
  }
  std::vector<ColumnSpace::Addition> wanted;
  less.Admit(Side::kContext, "device", limits, wanted, Source::kRequest);
  less.Admit(Side::kItem, "described", limits, wanted, Source::kRequest);
  less.AdmitCrossing(0, 1, limits, wanted);
  ASSERT_EQ(wanted.size(), 3U);  // two columns, and those that are shared
  ASSERT_EQ(wanted[2].kind, ColumnSpace::Kind::kShared);
  space.Admit(Side::kContext, "device", limits, added, Source::kRequest);
  added.clear();
  for (const ColumnSpace::Addition& each : wanted) space.AdmitLike(each, limits, added);
  // The name of the item says where it came from; what is there stays as it is.
  ASSERT_EQ(added.size(), 2U);
  EXPECT_EQ(added[0], (ColumnSpace::Addition{.described = true, .name = "described"}));
  EXPECT_EQ(added[1].kind, ColumnSpace::Kind::kShared);
  EXPECT_EQ(space.size(), 4 + limits.shared());
  // Beyond the limits it shares, and crossings of columns that are not known are left out.
  added.clear();
  space.AdmitLike({.side = Side::kContext, .name = "city=Rome"}, limits, added);
  ASSERT_EQ(added.size(), 1U);
  EXPECT_EQ(added[0],
            (ColumnSpace::Addition{
                .kind = ColumnSpace::Kind::kSharer, .side = Side::kContext, .name = "city=*"}));
  added.clear();
  for (const ColumnSpace::Addition& each : std::vector<ColumnSpace::Addition>{
           {.kind = ColumnSpace::Kind::kCrossing, .item = 0, .other = 1000},
           {.kind = ColumnSpace::Kind::kShared, .count = 8},
           {.kind = ColumnSpace::Kind::kSharer, .side = Side::kContext, .name = "city=*"}}) {
    space.AdmitLike(each, limits, added);
  }
  EXPECT_TRUE(added.empty());
}

TEST(ColumnSpaceTest, BytesGiveTheSameAdditions) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (int i = 0; i < 20; ++i) space.Admit(Side::kItem, std::to_string(i), kSmall, added);
  space.Admit(Side::kUser, "Größe=\xE2\x82\xAC", kSmall, added);
  ByteWriter out;
  SaveAdditions(out, space.Additions());
  ByteReader in(out.bytes());
  const auto loaded = LoadAdditions(in);
  in.ExpectEnd();
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  ExpectSame(space, Repeat(loaded));
  for (std::size_t cut = 0; cut < out.bytes().size(); ++cut) {
    ByteReader part(std::string_view(out.bytes()).substr(0, cut));
    LoadAdditions(part);
    part.ExpectEnd();
    EXPECT_FALSE(part.ok()) << cut;
  }
}

TEST(ColumnSpaceTest, RefusesAdditionsThatCannotBe) {
  ColumnSpace space;
  ASSERT_TRUE(space.Append({.kind = Kind::kName, .name = "a"}).ok());
  const auto before = space.Additions();
  for (const ColumnSpace::Addition& bad : std::vector<ColumnSpace::Addition>{
           {.kind = Kind::kName, .name = "a"},
           {.kind = Kind::kName, .name = std::string(ColumnSpace::kMaxNameBytes + 1, 'x')},
           {.kind = Kind::kCrossing, .item = 0, .other = 1},
           {.kind = Kind::kShared, .count = 0},
           {.kind = Kind::kShared, .count = 5000}}) {
    EXPECT_EQ(space.Append(bad).code(), StatusCode::kCorruption);
  }
  EXPECT_EQ(space.Additions(), before);
}

TEST(ColumnSpaceTest, KnowsPlacesInArrays) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"[0]", "e[12]", "tag=[x]", "e[]", "odd]"}) {
    space.Admit(Side::kItem, name, kSmall, added);
  }
  EXPECT_TRUE(space.IsPlace(0));
  EXPECT_TRUE(space.IsPlace(1));
  for (std::size_t i = 2; i < 5; ++i) EXPECT_FALSE(space.IsPlace(i)) << i;
  EXPECT_EQ(PlaceName("e", 12), "e[12]");
}

TEST(ColumnSpaceTest, ResolvesNamesToCells) {
  ColumnSpace space;
  std::vector<ColumnSpace::Addition> added;
  for (const char* name : {"a", "b"}) space.Admit(Side::kItem, name, kSmall, added);
  Cells cells;
  std::vector<NamedFeature> unknown;
  Resolve(space, kSmall, Side::kItem, std::vector<NamedFeature>{{"b", 2}, {"new", 7}, {"a", -1}},
          cells, &unknown);
  cells.push_back({.column = 1, .value = 0.5});
  Compact(cells);
  EXPECT_EQ(cells, (Cells{{0, -1}, {1, 2.5}}));
  EXPECT_EQ(unknown, (std::vector<NamedFeature>{{"new", 7}}));
}

}  // namespace
}  // namespace codband::features
