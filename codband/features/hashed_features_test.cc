#include "codband/features/hashed_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace codband::features {
namespace {

TEST(HashedFeaturesTest, AddsEachValueWithTheSignOfItsPlace) {
  std::vector<double> out(8, 0.5);
  const NamedFeature price{.name = "price", .value = 3};
  HashFeatures(std::vector{price}, out);
  const HashedPlace place = PlaceOf("price", out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i == place.index ? 0.5 + place.sign * 3 : 0.5) << i;
  }
}

TEST(HashedFeaturesTest, NamesThatShareAPlaceAddUp) {
  std::vector<double> out(1);
  const std::vector<NamedFeature> named = {{"a", 1}, {"b", 10}, {"c", 100}};
  HashFeatures(named, out);
  double expected = 0;
  for (const NamedFeature& feature : named)
    expected += PlaceOf(feature.name, 1).sign * feature.value;
  EXPECT_EQ(out[0], expected);
}

// Signs must be independent of places, or collisions would not cancel on average.
TEST(HashedFeaturesTest, PlacesAndSignsAreEvenlySpread) {
  constexpr std::size_t kDim = 4;
  constexpr int kNames = 4000;
  std::vector<int> count(2 * kDim);
  for (int i = 0; i < kNames; ++i) {
    const HashedPlace place = PlaceOf("name" + std::to_string(i), kDim);
    ASSERT_LT(place.index, kDim);
    ASSERT_EQ(std::abs(place.sign), 1);
    ++count[2 * place.index + (place.sign > 0 ? 1 : 0)];
  }
  // Each has mean 500 and standard deviation 21: five of them.
  for (const int names : count) EXPECT_NEAR(names, 500, 105);
}

}  // namespace
}  // namespace codband::features
