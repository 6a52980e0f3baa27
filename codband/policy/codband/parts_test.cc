#include "codband/policy/codband/parts.h"

#include <gtest/gtest.h>

#include <string>

#include "codband/policy/codband/codband.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(PartsTest, DefaultsOfTheOptionsAreTheFirstParts) {
  const CoDBandOptions defaults;
  EXPECT_EQ(LikelihoodParts().front().word, defaults.likelihood);
  EXPECT_EQ(DetectorParts().front().word, defaults.detector);
  EXPECT_EQ(HyperParts().front().word, defaults.hyper);
  EXPECT_EQ(ModelPriorParts().front().word, defaults.model_prior);
  EXPECT_EQ(ExplorationParts().front().word, defaults.explore);
  EXPECT_EQ(DepartureParts().front().word, defaults.departure);
}

TEST(PartsTest, UnknownWordIsNamedWithThoseThereAre) {
  try {
    FindPart(DetectorParts(), "nosuch");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'nosuch' is unknown, expected bayes, window, none"),
              std::string::npos)
        << error.what();
  }
}

// Every part learns and is restored: detectors are what a new part is most likely to be.
TEST(PartsTest, EveryDetectorSavesAndRestoresItsState) {
  for (const DetectorPart& part : DetectorParts()) {
    SCOPED_TRACE(part.word);
    TestWorld world(3);
    const std::string spec = "codband:detector=" + std::string(part.word);
    const auto policy = MakeOrDie(spec, world.context());
    for (int i = 0; i < 300; ++i) world.Step(*policy);
    ByteWriter saved;
    policy->SaveState(saved);
    const auto restored = MakeOrDie(spec, world.context());
    ByteReader in(saved.bytes());
    restored->LoadState(in);
    in.ExpectEnd();
    ASSERT_TRUE(in.ok()) << in.status().ToString();
    TestWorld twin(3);
    twin.set_step(world.step());
    for (int i = 0; i < 300; ++i) {
      const LearnOutcome first = world.Step(*policy);
      const LearnOutcome second = twin.Step(*restored);
      ASSERT_EQ(first.change_detected, second.change_detected) << i;
      ASSERT_EQ(first.after, second.after) << i;
    }
  }
}

}  // namespace
}  // namespace codband
