#include "codband/experiments/simulation_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

namespace codband::experiments {
namespace {

using Options = sim::SyntheticOptions;
using Texts = std::vector<std::optional<std::string>>;

void Change(std::size_t& member) { ++member; }
void Change(double& member) { member += 0.25; }
void Change(bool& member) { member = !member; }
void Change(std::optional<double>& member) { member = 0.5; }
void Change(sim::Setting& member) { member = sim::Setting::kNovel; }
void Change(sim::VisitOrder& member) { member = sim::VisitOrder::kRandom; }
void Change(sim::RewardKind& member) { member = sim::RewardKind::kRatings; }
void Change(sim::FeatureKind& member) { member = sim::FeatureKind::kPadded; }

// The options with one member changed, for each member. Does not compile if a member is missing.
std::vector<Options> EachMemberChanged() {
  constexpr std::size_t kMembers = 25;
  std::vector<Options> changed(kMembers);
  for (std::size_t i = 0; i < kMembers; ++i) {
    auto& [setting, users, models, rounds, period_min, period_max, noise, arms, pool, dim, order,
           drift, separation, rewards, item_effects, group_item_effects, features, click_rate,
           individual, item_life, contexts, partitions, publish_min, publish_max, pool_delay] =
        changed[i];
    std::size_t place = 0;
    const auto visit = [&](auto&... members) {
      (void)((place++ == i ? (Change(members), true) : false) || ...);
    };
    visit(setting, users, models, rounds, period_min, period_max, noise, arms, pool, dim, order,
          drift, separation, rewards, item_effects, group_item_effects, features, click_rate,
          individual, item_life, contexts, partitions, publish_min, publish_max, pool_delay);
    // What these ask of others.
    if (click_rate) rewards = sim::RewardKind::kClicks;
    if (contexts > 0) dim = 24;
    if (i > 21) partitions = 3;
  }
  return changed;
}

// What a command line would hand over.
Texts TextsOf(const std::string& flags) {
  Texts texts(SimulationSettings().size());
  std::istringstream words(flags);
  std::string word;
  while (words >> word) {
    const auto settings = SimulationSettings();
    const auto found = std::ranges::find_if(
        settings, [&](const SimulationSetting& setting) { return setting.flag == word; });
    EXPECT_NE(found, settings.end()) << word;
    std::string value;
    if (*found->value != '\0') words >> value;
    texts[static_cast<std::size_t>(found - settings.begin())] = value;
  }
  return texts;
}

std::string Message(const std::string& flags) {
  const auto parsed = ParseSimulation(TextsOf(flags));
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(SimulationSettingsTest, EveryMemberChangesTheIdentity) {
  std::set<std::string> identities = {SimulationIdentity(Options{})};
  for (const Options& options : EachMemberChanged()) {
    ASSERT_FALSE(options == Options{});
    EXPECT_TRUE(identities.insert(SimulationIdentity(options)).second)
        << SimulationIdentity(options);
  }
}

TEST(SimulationSettingsTest, FlagsAreReadBackAsTheSamePopulation) {
  for (Options options : EachMemberChanged()) {
    const auto parsed = ParseSimulation(TextsOf(SimulationFlags(options)));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_TRUE(parsed.value() == options) << SimulationFlags(options);
  }
}

TEST(SimulationSettingsTest, EveryMemberChangesTheJson) {
  std::set<std::string> texts = {SimulationJson(Options{}).dump()};
  for (const Options& options : EachMemberChanged()) {
    EXPECT_TRUE(texts.insert(SimulationJson(options).dump()).second) << SimulationFlags(options);
  }
}

TEST(SimulationSettingsTest, IdentityOfThePapersPopulationIsAsItWasWrittenBefore) {
  // Runs that earlier builds kept on disk are found by this text.
  EXPECT_EQ(SimulationIdentity(Options{}),
            "setting 2 users 100 models 10 rounds 3000 period 500:3000 noise 0.1 arms 10 pool 1000 "
            "dim 25");
}

TEST(SimulationSettingsTest, JsonNamesEverySettingAndIsNullWhereItHasNoEffect) {
  EXPECT_EQ(
      SimulationJson(Options{}).dump(),
      R"({"setting":2,"users":100,"models":10,"rounds":3000,"period":[500,3000],"noise":0.1,)"
      R"("arms":10,"pool":1000,"dim":25,"order":"turn","drift":false,"separation":null,)"
      R"("rewards":"gaussian","item-effects":null,"group-item-effects":null,)"
      R"("features":"gaussian","click-rate":null,"individual":0.0,"item-life":0,"contexts":0,)"
      R"("partitions":1,"publish":null,"pool-delay":null})");
  const nlohmann::ordered_json json =
      SimulationJson({.setting = sim::Setting::kStationary, .rewards = sim::RewardKind::kClicks});
  EXPECT_TRUE(json["period"].is_null());
  EXPECT_TRUE(json["noise"].is_null());
}

TEST(SimulationSettingsTest, FlagsLeaveOutWhatHasNoEffectOrGoesBeyondThePaperByDefault) {
  EXPECT_EQ(SimulationFlags(Options::Paper(sim::Setting::kStationary)),
            "--setting 3 --users 500 --models 2 --rounds 600 --noise 0.1 --arms 10 --pool 1000 "
            "--dim 25");
  EXPECT_EQ(SimulationFlags({.order = sim::VisitOrder::kRandom,
                             .drift = true,
                             .separation = 0.4,
                             .rewards = sim::RewardKind::kRareClicks}),
            "--setting 2 --users 100 --models 10 --rounds 3000 --period 500:3000 --arms 10 --pool "
            "1000 --dim 25 --order random --drift --separation 0.4 --rewards rare-clicks");
}

TEST(SimulationSettingsTest, SettingDecidesTheDefaultsOfTheOthers) {
  const Options stationary = ParseSimulation(TextsOf("--setting 3 --rounds 7")).value();
  EXPECT_EQ(stationary.users, 500U);
  EXPECT_EQ(stationary.rounds, 7U);
  EXPECT_TRUE(ParseSimulation(TextsOf("")).value() == Options{});
}

TEST(SimulationSettingsTest, MessagesNameTheFlagTheValueAndWhatIsAllowed) {
  EXPECT_EQ(Message("--users 0"), "--users = '0', expected a whole number from 1 to 1000000000");
  EXPECT_EQ(Message("--users 20000000"),
            "--users = 20000000, expected a whole number from 1 to 10000000");
  EXPECT_EQ(Message("--setting 5"), "--setting = '5', expected a whole number from 1 to 4");
  for (const char* period : {"9", "9:", ":9", "9:3", "0:3", "1:2:3", ""}) {
    Texts texts(SimulationSettings().size());
    texts[4] = period;
    EXPECT_EQ(ParseSimulation(texts).status().message(),
              "--period = '" + std::string(period) +
                  "', expected MIN:MAX with 1 ≤ MIN ≤ MAX, such as 500:3000");
  }
  EXPECT_EQ(Message("--order shuffled"), "--order = 'shuffled', expected turn, random or zipf");
  EXPECT_EQ(Message("--rewards likes"),
            "--rewards = 'likes', expected one of gaussian, clicks, rare-clicks, counts, ratings");
  EXPECT_EQ(Message("--rewards clicks --noise 1"),
            "--noise = '1', expected none: clicks have no noise that could be set");
  EXPECT_EQ(Message("--item-effects -1"), "--item-effects = -1, expected a number from 0 to 100");
  EXPECT_EQ(Message("--partitions 257"),
            "--partitions = 257, expected a whole number from 1 to 256");
  EXPECT_EQ(Message("--publish 9:3"),
            "--publish = '9:3', expected MIN:MAX with 1 ≤ MIN ≤ MAX, such as 100:5000");
  EXPECT_EQ(Message("--separation 2"), "--separation = 2, expected a number from 0.01 to 1.4");
}

TEST(SimulationSettingsTest, FlagsAreUniqueAndHaveHelp) {
  std::set<std::string> flags;
  for (const SimulationSetting& setting : SimulationSettings()) {
    EXPECT_TRUE(flags.insert(setting.flag).second) << setting.flag;
    EXPECT_TRUE(std::string_view(setting.flag).starts_with("--"));
    EXPECT_FALSE(std::string_view(setting.help).empty()) << setting.flag;
  }
}

}  // namespace
}  // namespace codband::experiments
