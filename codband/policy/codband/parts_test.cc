#include "codband/policy/codband/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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
  std::string message;
  try {
    FindPart(DetectorParts(), "nosuch");
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("'nosuch' is unknown, expected bayes, window"), std::string::npos)
      << message;
  for (const DetectorPart& part : DetectorParts()) {
    EXPECT_EQ(FindPart(DetectorParts(), part.word).make, part.make);
    EXPECT_NE(message.find(part.word), std::string::npos) << part.word;
  }
}

TEST(PartsTest, AllowedWordsOfTheParametersAreThoseOfTheTable) {
  const PolicyInfo info = CoDBandInfo();
  const auto words_of = [&](std::string_view name) {
    return std::ranges::find(info.params, name, &ParamInfo::name)->words;
  };
  const auto expect = [&](std::string_view name, const auto parts) {
    std::vector<std::string> words;
    for (const auto& part : parts) words.emplace_back(part.word);
    EXPECT_EQ(words_of(name), words);
  };
  expect("likelihood", LikelihoodParts());
  expect("detector", DetectorParts());
  expect("hyper", HyperParts());
  expect("prior", ModelPriorParts());
  expect("explore", ExplorationParts());
  expect("departure", DepartureParts());
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
