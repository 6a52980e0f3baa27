#include "codband/policy/model_aliases.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "codband/base/random.h"

namespace codband {
namespace {

TEST(ModelAliasesTest, AModelGoesByTheSmallestOfItsNames) {
  ModelAliases aliases;
  EXPECT_EQ(aliases.Resolve(7), 7U);
  EXPECT_EQ(aliases.Join(7, 9), 9U);
  EXPECT_EQ(aliases.Join(9, 4), 7U);  // 9 is 7 by now
  EXPECT_EQ(aliases.Join(4, 9), kNoModel);
  for (const ModelId id : {4, 7, 9}) EXPECT_EQ(aliases.Resolve(id), 4U);
  EXPECT_EQ(aliases.Resolve(kNoModel), kNoModel);
}

// Whatever is joined in whatever order: names are those of the connected components, and every
// alias leads to the name in one step, so that no chain of them can come back.
TEST(ModelAliasesTest, ThereAreNoCycles) {
  constexpr std::size_t kModels = 40;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random({seed, 0}, 610);
    ModelAliases aliases;
    std::array<ModelId, kModels> names;
    std::iota(names.begin(), names.end(), ModelId{0});
    for (int i = 0; i < 45; ++i) {
      const ModelId one = random.Below(kModels);
      const ModelId other = random.Below(kModels);
      aliases.Join(one, other);
      const ModelId to = std::min(names[one], names[other]);
      const ModelId from = std::max(names[one], names[other]);
      for (ModelId& name : names) name = name == from ? to : name;
    }
    for (ModelId id = 0; id < kModels; ++id) EXPECT_EQ(aliases.Resolve(id), names[id]);
    for (const ModelAliases::Alias& alias : aliases.entries()) {
      EXPECT_LT(alias.to, alias.from);
      EXPECT_EQ(aliases.Resolve(alias.to), alias.to);
    }
    ByteWriter out;
    aliases.Save(out);
    ByteReader in(out.bytes());
    ModelAliases loaded;
    loaded.Load(in);
    EXPECT_TRUE(in.ok());
    EXPECT_TRUE(loaded == aliases);
  }
}

TEST(ModelAliasesTest, BytesWithACycleOrAChainAreRefused) {
  using Alias = ModelAliases::Alias;
  for (const auto& entries :
       {std::array{Alias{3, 5}, Alias{5, 3}}, std::array{Alias{3, 1}, Alias{5, 3}},
        std::array{Alias{5, 1}, Alias{3, 1}}}) {
    ByteWriter out;
    out.U64(entries.size());
    for (const Alias& alias : entries) {
      out.U64(alias.from);
      out.U64(alias.to);
    }
    ByteReader in(out.bytes());
    ModelAliases aliases;
    aliases.Load(in);
    EXPECT_FALSE(in.ok());
    EXPECT_TRUE(aliases.empty());
  }
}

}  // namespace
}  // namespace codband
