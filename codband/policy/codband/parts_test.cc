#include "codband/policy/codband/parts.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "codband/policy/codband/codband.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

TEST(PartsTest, DefaultsOfTheOptionsAreTheFirstParts) {
  const CoDBandOptions defaults;
  EXPECT_EQ(PartsOf("likelihood").front().word, defaults.likelihood);
  EXPECT_EQ(PartsOf("detector").front().word, defaults.detector);
  EXPECT_EQ(PartsOf("hyper").front().word, defaults.hyper);
  EXPECT_EQ(PartsOf("prior").front().word, defaults.model_prior);
  EXPECT_EQ(PartsOf("explore").front().word, defaults.explore);
  EXPECT_EQ(PartsOf("departure").front().word, defaults.departure);
  EXPECT_EQ(PartsOf("items").front().word, defaults.items);
  EXPECT_TRUE(PartsOf("nosuch").empty());
}

TEST(PartsTest, UnknownWordIsNamedWithThoseThereAre) {
  std::string message;
  try {
    FindPart("detector", "nosuch");
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("detector = 'nosuch', expected one of bayes, window"), std::string::npos)
      << message;
  for (const Part& part : PartsOf("detector")) {
    EXPECT_EQ(&FindPart("detector", part.word), &part);
    EXPECT_NE(message.find(part.word), std::string::npos) << part.word;
  }
}

TEST(PartsTest, PartsOfAParameterAreMadeAlike) {
  for (const Part& part : PartsOf("likelihood")) {
    EXPECT_TRUE(std::holds_alternative<LikelihoodFactory>(part.make)) << part.word;
  }
  for (const Part& part : PartsOf("detector")) {
    EXPECT_TRUE(std::holds_alternative<DetectorFactory>(part.make)) << part.word;
  }
  for (const Part& part : PartsOf("prior")) {
    EXPECT_TRUE(std::holds_alternative<ModelPriorFactory>(part.make)) << part.word;
  }
  for (const Part& part : PartsOf("explore")) {
    EXPECT_TRUE(std::holds_alternative<Exploration>(part.make)) << part.word;
  }
  for (const Part& part : PartsOf("items")) {
    EXPECT_TRUE(std::holds_alternative<ItemEffectsFactory>(part.make)) << part.word;
  }
  for (const char* parameter : {"hyper", "departure"}) {
    for (const Part& part : PartsOf(parameter)) {
      EXPECT_TRUE(std::holds_alternative<bool>(part.make)) << part.word;
    }
  }
}

TEST(PartsTest, AllowedWordsOfTheParametersAreThoseOfTheTable) {
  for (const ParamInfo& param : CoDBandInfo().params) {
    std::vector<std::string> words;
    for (const Part& part : PartsOf(param.name)) words.emplace_back(part.word);
    if (!words.empty()) {
      EXPECT_EQ(param.words, words) << param.name;
    }
  }
}

// Every part learns and is restored: detectors are what a new part is most likely to be.
TEST(PartsTest, EveryDetectorSavesAndRestoresItsState) {
  for (const Part& part : PartsOf("detector")) {
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
