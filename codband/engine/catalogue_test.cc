#include "codband/engine/catalogue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace codband::engine {
namespace {

constexpr std::size_t kDim = 3;

std::shared_ptr<const Item> MakeItem(std::string id, double value) {
  return std::make_shared<const Item>(Item{.id = std::move(id),
                                           .features = {value, -value, 2 * value},
                                           .named = {},
                                           .tags = {std::to_string(value)}});
}

// Few ids, so that known ones come again; some are prefixes of others.
std::string AnyId() {
  return *rc::gen::element<std::string>("a", "b", "ba", "bb", "c", "ca", "cab", "d", "\xff", "e");
}

using Model = std::map<std::string, Item>;

void ExpectEqual(const Catalogue& catalogue, const Model& model) {
  RC_ASSERT(catalogue.size() == model.size());
  RC_ASSERT(catalogue.arms().count() == model.size());
  RC_ASSERT(catalogue.arms().dim == kDim);
  std::size_t i = 0;
  for (const auto& [id, item] : model) {
    RC_ASSERT(catalogue.item(i) == item);
    RC_ASSERT(catalogue.Find(id) == &catalogue.item(i));
    RC_ASSERT(std::ranges::equal(catalogue.arms().arm(i), item.features));
    ++i;
  }
  RC_ASSERT(catalogue.Find("nowhere") == nullptr);
}

RC_GTEST_PROP(CatalogueTest, DoesWhatAMapDoes, ()) {
  Catalogue catalogue(kDim);
  Model model;
  const int steps = *rc::gen::inRange(1, 30);
  for (int step = 0; step < steps; ++step) {
    if (*rc::gen::inRange(0, 3) == 0) {
      const std::string id = AnyId();
      RC_ASSERT(catalogue.Erase(id) == (model.erase(id) > 0));
      RC_ASSERT(catalogue.Find(id) == nullptr);
    } else {
      std::vector<std::shared_ptr<const Item>> items;
      const int count = *rc::gen::inRange(0, 8);
      for (int i = 0; i < count; ++i) {
        items.push_back(MakeItem(AnyId(), *rc::gen::inRange(-100, 100)));
        model.insert_or_assign(items.back()->id, *items.back());
      }
      catalogue.Put(items);
    }
    ExpectEqual(catalogue, model);
  }
}

// Two copies share items: what one lets go, the other still has.
TEST(CatalogueTest, SharesItemsWithOtherCatalogues) {
  Catalogue one(kDim);
  Catalogue other(kDim);
  {
    const std::vector items = {MakeItem("a", 1), MakeItem("b", 2)};
    one.Put(items);
    other.Put(items);
  }
  EXPECT_EQ(one.Find("a"), other.Find("a"));
  EXPECT_TRUE(one.Erase("a"));
  one.Put(std::vector{MakeItem("b", 3)});
  EXPECT_EQ(other.Find("a")->features[0], 1);
  EXPECT_EQ(other.Find("b")->features[0], 2);
  EXPECT_EQ(one.Find("b")->features[0], 3);
}

TEST(CatalogueTest, SaysWhatIsWrongWithAnItem) {
  const auto problem = [](const Item& item) { return CheckItem(item, kDim, 1e5).message(); };
  const Item good = *MakeItem("a", 1);
  EXPECT_EQ(problem(good), "");
  Item item = good;
  item.id.clear();
  EXPECT_EQ(problem(item), "id: has 0 bytes, expected 1 to 256");
  item = good;
  item.features.push_back(0);
  EXPECT_EQ(problem(item), "features: has 4 numbers, expected 3");
  item = good;
  item.features[1] = -INFINITY;
  EXPECT_EQ(problem(item), "features[1]: is -inf, expected a number within ±100000");
  item = good;
  item.tags.assign(1001, "t");
  EXPECT_EQ(problem(item), "tags: there are 1001, expected at most 1000");
  item = good;
  item.tags = {"t", std::string(257, 't')};
  EXPECT_EQ(problem(item), "tags[1]: has 257 bytes, expected 1 to 256");
}

}  // namespace
}  // namespace codband::engine
