#include "codband/experiments/prepare_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "codband/experiments/prepare_output.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::optional<std::string>>;

Texts With(std::string_view flag, const std::string& text) {
  Texts texts(PrepareSettings().size());
  bool found = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (PrepareSettings()[i].flag != flag) continue;
    texts[i] = text;
    found = true;
  }
  EXPECT_TRUE(found) << flag;
  return texts;
}

std::string Message(data::DataSet set, std::string_view flag, const std::string& text) {
  const auto parsed = ParsePrepare(set, With(flag, text));
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(PrepareSettingsTest, WithoutFlagsTheDefaultsOfTheDataSetHold) {
  for (const data::DataSet set : data::kDataSets) {
    const auto parsed = ParsePrepare(set, Texts(PrepareSettings().size()));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(PrepareJson(set, parsed.value()), PrepareJson(set, replay::PrepareOptions::For(set)));
  }
}

// What is typed comes back in meta.json, for every setting.
TEST(PrepareSettingsTest, EverySettingChangesItsOwnFieldOfTheJson) {
  const std::map<std::string, std::string> values = {
      {"--order", "interleaved"}, {"--scale", "unit"},          {"--terms", "words"},
      {"--stop-words", "none"},   {"--stem", "english"},        {"--tf", "log"},
      {"--embedding", "plain"},   {"--positive-rating", "3.5"}, {"--regularise", "0.5"}};
  for (const PrepareSetting& setting : PrepareSettings()) {
    for (const data::DataSet set : data::kDataSets) {
      if (!((setting.sets >> static_cast<unsigned>(set)) & 1U)) continue;
      const auto value = values.find(setting.flag);
      std::string typed = value == values.end() ? "77" : value->second;
      if (set == data::DataSet::kMovieLens && typed == "unit") typed = "none";
      if (set == data::DataSet::kMovieLens && typed == "words") typed = "tags";
      const auto parsed = ParsePrepare(set, With(setting.flag, typed));
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      const auto before = PrepareJson(set, replay::PrepareOptions::For(set));
      const auto after = PrepareJson(set, parsed.value());
      std::size_t changed = 0;
      for (const auto& [key, json] : after.items()) {
        if (json == before[key]) continue;
        ++changed;
        std::string name(setting.flag + 2);
        std::ranges::replace(name, '-', '_');
        EXPECT_EQ(key, name);
        EXPECT_EQ(json.is_string() ? json.get<std::string>() : json.dump(), typed);
      }
      EXPECT_EQ(changed, 1U) << setting.flag;
    }
  }
}

TEST(PrepareSettingsTest, MessagesNameTheFlagTheValueAndWhatIsAllowed) {
  using enum data::DataSet;
  EXPECT_EQ(Message(kLastFm, "--dim", "0"), "--dim = '0', expected a whole number from 1 to 1024");
  EXPECT_EQ(Message(kLastFm, "--order", "random"),
            "--order = 'random', expected stacked, interleaved or time");
  EXPECT_EQ(Message(kMovieLens, "--positive-rating", "9"),
            "--positive-rating = '9', expected a number from 0 to 5");
  EXPECT_EQ(Message(kLastFm, "--candidates", "1"), "--candidates = '1', expected 2 or more");
  EXPECT_EQ(Message(kLastFm, "--candidates", "0"), "--candidates = '0', expected 2 or more");
  EXPECT_EQ(Message(kYahoo, "--candidates", "0"), "");
  EXPECT_EQ(Message(kYahoo, "--dim", "5"),
            "--dim is not for yahoo, but for lastfm, delicious, movielens");
  EXPECT_EQ(ParseDataSet("netflix").status().message(),
            "data set 'netflix' is unknown; there are lastfm, delicious, movielens, yahoo");
  EXPECT_EQ(ParseDataSet("yahoo").value(), kYahoo);
}

TEST(PrepareOutputTest, MetaHoldsSettingsFilesAndTheStream) {
  replay::PreparedStream stream;
  stream.events = 12;
  stream.terms = 5;
  stream.visits = 9;
  const data::InputLog log(false);
  const auto options = replay::PrepareOptions::For(data::DataSet::kLastFm);
  const Json json = Json::parse(MetaJson(data::DataSet::kLastFm, options, stream, log));
  EXPECT_EQ(json["data_set"], "lastfm");
  EXPECT_EQ(json["options"]["dim"], 25);
  EXPECT_EQ(json["stream"]["events"], 12);
  EXPECT_EQ(json["stream"]["terms"], 5);
  EXPECT_FALSE(json["stream"].contains("visits"));
  const Json yahoo = Json::parse(MetaJson(
      data::DataSet::kYahoo, replay::PrepareOptions::For(data::DataSet::kYahoo), stream, log));
  EXPECT_EQ(yahoo["stream"]["visits"], 9);
  EXPECT_FALSE(yahoo["options"].contains("dim"));
}

TEST(PrepareOutputTest, SummaryNamesTheDirectoryAndTheNextCommand) {
  replay::PreparedStream stream;
  stream.events = 12345;
  stream.possible_events = 20000;
  stream.terms = 1000;
  stream.variance_share = 0.5;
  const std::string text = PrepareSummary(stream, "out/x");
  EXPECT_EQ(text.rfind("Wrote out/x\nEvents: 12,345 of 20,000", 0), 0U) << text;
  EXPECT_NE(text.find("(50.0% of the variance of 1,000 terms)"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("Next: codband replay out/x\n")) << text;
}

TEST(PrepareOutputTest, MalformedLinesAreCountedWithExamples) {
  EXPECT_EQ(MalformedText(data::InputLog(false)), "");
  data::InputLog log(false);
  log.BeginFile("tags.dat");
  log.AddRow();
  for (std::size_t line = 2; line < 9; ++line) {
    ASSERT_TRUE(log.AddMalformed(line, "2 fields, expected 3").ok());
  }
  const std::string text = MalformedText(log);
  EXPECT_EQ(text.rfind("Left out 7 malformed lines of 8:\n  tags.dat:2: 2 fields, expected 3\n", 0),
            0U)
      << text;
  EXPECT_TRUE(text.ends_with("\n  ...\n")) << text;
}

}  // namespace
}  // namespace codband::experiments
