#include "codband/policy/codband/model_evidence.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

// A model of ten periods with noise 0.01, rewards around 1, at distance 1 in each direction.
ModelEvidence UsualModel(double size = 1) {
  return {.observations = 400 * size,
          .reward_sum = 4 * size,
          .reward_squares = 400 * size,
          .feature_squares = 400 * size,
          .residuals = 0.01 * (400 * size - 6),
          .determined = {5, 1},
          .distance = {5, 0.1},
          .periods = 10};
}

TEST(EvidenceBoundsTest, ModelsThatAreAlikeAreNotTouched) {
  std::vector<ModelEvidence> models;
  for (int i = 0; i < 5; ++i) {
    models.push_back(UsualModel(1 + i));
    models.back().residuals *= 1 + 0.5 * i;
    models.back().distance[0] *= 1 + 2 * i;
  }
  const double residuals = models[4].residuals;
  EXPECT_FALSE(EvidenceBounds().Apply(models));
  EXPECT_EQ(models[4].residuals, residuals);
  EXPECT_EQ(models[4].weight, 1);
}

TEST(EvidenceBoundsTest, OneUserWithManyObservationsDoesNotDecideTheNoise) {
  std::vector<ModelEvidence> models(4, UsualModel());
  models[1].periods = 1;
  models[1].observations = 100'000;
  models[1].residuals = 100'000;  // a hundred times the noise of the others
  EXPECT_TRUE(EvidenceBounds().Apply(models));
  EXPECT_NEAR(models[1].residuals / models[1].degrees_of_freedom(), 0.01, 1e-12);
  EXPECT_EQ(models[1].weight, 1);
  EXPECT_NEAR(models[0].residuals / models[0].degrees_of_freedom(), 0.01, 1e-12);
}

TEST(EvidenceBoundsTest, OneUserWithoutNoiseDoesNotDecideItEither) {
  std::vector<ModelEvidence> models(4, UsualModel());
  models[1].periods = 1;
  models[1].observations = 100'000;
  models[1].residuals = 0;
  EXPECT_TRUE(EvidenceBounds().Apply(models));
  EXPECT_NEAR(models[1].residuals / models[1].degrees_of_freedom(), 0.01, 1e-12);
}

TEST(EvidenceBoundsTest, FarModelHardlyMovesTheCommonMean) {
  for (const std::size_t part : {0U, 1U}) {
    std::vector<ModelEvidence> models(4, UsualModel());
    models[3].periods = 1;
    models[3].distance[part] *= 1000;
    EXPECT_TRUE(EvidenceBounds().Apply(models));
    EXPECT_NEAR(models[3].distance[part], models[0].distance[part], 1e-9);
    EXPECT_NEAR(models[3].weight, 0.001, 1e-9);
    EXPECT_EQ(models[0].weight, 1);
  }
}

TEST(EvidenceBoundsTest, LargeRewardsOfOneModelDoNotSetTheScale) {
  std::vector<ModelEvidence> models(4, UsualModel());
  models[2].periods = 1;
  models[2].reward_squares *= 1e6;
  models[2].reward_sum = 400 * 1e3;
  EXPECT_TRUE(EvidenceBounds().Apply(models));
  EXPECT_NEAR(models[2].reward_squares, 400, 1e-6);
  EXPECT_NEAR(models[2].reward_sum, 400, 1e-6);
}

TEST(EvidenceBoundsTest, SeveralPeriodsOutweighOne) {
  // Of two models the one that most periods are on is the usual one, whichever is noisier.
  for (const double periods : {1.0, 50.0}) {
    std::vector<ModelEvidence> models(2, UsualModel());
    models[0].residuals *= 1000;
    models[0].periods = periods;
    const double usual = models[periods > 10 ? 0 : 1].residuals;
    EXPECT_TRUE(EvidenceBounds().Apply(models));
    EXPECT_NEAR(models[0].residuals, usual, 1e-9);
    EXPECT_NEAR(models[1].residuals, usual, 1e-9);
  }
}

TEST(EvidenceBoundsTest, NothingIsFarFromNothing) {
  std::vector<ModelEvidence> models(3, UsualModel());
  for (ModelEvidence& model : models) model.reward_squares = model.residuals = 0;
  models[0].reward_squares = 100;
  EXPECT_FALSE(EvidenceBounds().Apply(models));
  EXPECT_FALSE(EvidenceBounds().Apply({}));
}

}  // namespace
}  // namespace codband
