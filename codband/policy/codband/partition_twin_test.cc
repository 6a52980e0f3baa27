// Partitions that hear of every visit at once beside their twin, one policy for all
// (shared_pool.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codband/linalg/kernels.h"
#include "codband/policy/shared_pool.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

// Items with features and an effect of their own; all users have the same taste.
struct Shop {
  static constexpr std::size_t kDim = 4;
  static constexpr std::size_t kItems = 12;
  static constexpr UserId kUsers = 15;

  explicit Shop(double effects) : features(kItems * kDim), effects_of(kItems), theta(kDim) {
    RandomStream random({1, 0}, 640);
    random.FillNormal(features);
    random.FillNormal(effects_of);
    random.FillNormal(theta);
    for (double& effect : effects_of) effect *= effects;
    for (ItemId item = 0; item < kItems; ++item) items.push_back(item);
  }
  ArmsView arms() const { return {features, kDim, items}; }
  double Mean(std::size_t arm) const {
    return linalg::Dot(arms().arm(arm), theta) + effects_of[arm];
  }

  std::vector<double> features;
  std::vector<double> effects_of;
  std::vector<double> theta;
  std::vector<ItemId> items;
};

class Twins {
 public:
  Twins(const std::string& spec, std::size_t partitions) {
    alone = MakeOrDie(spec, {.dim = Shop::kDim, .noise = 0.1});
    for (std::uint32_t p = 0; p < partitions; ++p) {
      parts.push_back(MakeOrDie(spec, {.dim = Shop::kDim, .noise = 0.1}));
      parts.back()->shared_pool()->SetPartition(p);
    }
  }

  Policy& Of(UserId user) { return *parts[user % parts.size()]; }

  void Exchange() {
    RegisterShelf shelf;
    ++version_;
    for (const auto& part : parts) {
      ASSERT_TRUE(shelf.Put(part->shared_pool()->Publish(version_)).ok());
    }
    const auto merged = parts[0]->shared_pool()->Merge(shelf.registers(), last_);
    ASSERT_TRUE(merged.ok());
    for (std::uint32_t p = 0; p < parts.size(); ++p) {
      ASSERT_TRUE(parts[p]->shared_pool()->Import(merged.value().imports.at(p)).ok());
    }
    last_ = merged.value().imports.at(0);
  }

  std::unique_ptr<Policy> alone;
  std::vector<std::unique_ptr<Policy>> parts;

 private:
  std::uint64_t version_ = 0;
  std::string last_;
};

// With nothing left to chance (one model, no hyper-parameter that is learned step by step), what
// partitions know is what one policy knows, and all they do is the same.
TEST(PartitionTwinTest, NothingIsDelayedNothingDiffers) {
  Twins twins("codband:hyper=fixed,outliers=kept,resample=0,a=0.001,b=1000000", 3);
  const Shop shop(0.5);
  RandomStream random({2, 0}, 641);
  for (std::uint64_t event = 0; event < 600; ++event) {
    const UserId user = random.Below(Shop::kUsers);
    const EventKey key{5, event};
    const Decision one = twins.alone->Choose(user, shop.arms(), key);
    const Decision several = twins.Of(user).Choose(user, shop.arms(), key);
    ASSERT_EQ(one.arm, several.arm) << event;
    ASSERT_NEAR(one.mean, several.mean, 1e-8) << event;
    ASSERT_NEAR(one.width, several.width, 1e-8) << event;
    const double reward = shop.Mean(one.arm) + 0.1 * random.Normal();
    twins.alone->Learn(one, reward, key);
    twins.Of(user).Learn(several, reward, key);
    twins.Exchange();
  }
  const auto model = twins.alone->DescribeModels();
  ASSERT_EQ(model.size(), 1U);
  for (const auto& part : twins.parts) {
    const auto models = part->DescribeModels();
    ASSERT_EQ(models.size(), 1U);
    EXPECT_EQ(models[0].observations, model[0].observations);
    EXPECT_EQ(models[0].users, model[0].users);
    for (std::size_t j = 0; j < Shop::kDim; ++j) {
      EXPECT_NEAR(models[0].theta[j], model[0].theta[j], 1e-8);
    }
    for (const ItemId item : shop.items) {
      const auto known = twins.alone->DescribeItem(item);
      const auto shared = part->DescribeItem(item);
      ASSERT_EQ(known.has_value(), shared.has_value()) << item;
      if (!known) continue;
      EXPECT_EQ(shared->shown, known->shown);
      EXPECT_NEAR(shared->effect, known->effect, 1e-8);
      EXPECT_NEAR(shared->width, known->width, 1e-8);
    }
  }
}

}  // namespace
}  // namespace codband
