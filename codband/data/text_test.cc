#include "codband/data/text.h"

#include <gtest/gtest.h>

namespace codband::data {
namespace {

using Strings = std::vector<std::string>;

TEST(TextTest, Latin1IsDecodedWhereTextIsNotUtf8) {
  EXPECT_EQ(ToUtf8("Amélie 日本"), "Amélie 日本");
  EXPECT_EQ(ToUtf8(""), "");
  EXPECT_EQ(ToUtf8("Am\xE9lie"), "Amélie");
  EXPECT_EQ(ToUtf8("\xED\xA0\x80"), "í\u00A0\u0080");  // a surrogate
  EXPECT_EQ(ToUtf8("\xC0\xAF"), "À¯");                 // longer than needed
  EXPECT_EQ(ToUtf8("caf\xC3"), "cafÃ");                // cut off
}

TEST(TextTest, Latin1BecomesTheSameCharactersInUtf8) {
  EXPECT_EQ(Latin1ToUtf8("Am\xE9lie \xFF\xA0|"), "Amélie ÿ\u00A0|");
  EXPECT_EQ(ToUtf8("bossa-nova fran\xE7"), "bossa-nova franç");
  EXPECT_EQ(ToUtf8("日本"), "日本");
}

TEST(TextTest, TagsThatLookAlikeAreTheSame) {
  EXPECT_EQ(NormaliseTag("  Female\tVocalists \r\n"), "female vocalists");
  EXPECT_EQ(NormaliseTag("Cafe\u0301"), "café");  // a combining accent
  EXPECT_EQ(NormaliseTag("ＪＰＯＰ"), "jpop");    // full width
  EXPECT_EQ(NormaliseTag("STRASSE"), NormaliseTag("Straße"));
  EXPECT_EQ(NormaliseTag("Am\xE9lie"), "amélie");
  EXPECT_EQ(NormaliseTag(" \t"), "");
}

TEST(TextTest, WordsAreRunsOfLettersAndDigitsOfAnyScript) {
  EXPECT_EQ(Tokenise("Amélie's Fabulous-Destiny (2001)"),
            (Strings{"amélie", "fabulous", "destiny", "2001"}));
  EXPECT_EQ(Tokenise("Σοφία и МИР"), (Strings{"σοφία", "мир"}));
  EXPECT_EQ(Tokenise("don't rock'n'roll"), (Strings{"dont", "rocknroll"}));
  EXPECT_EQ(Tokenise("'quoted'"), Strings{"quoted"});
  EXPECT_EQ(Tokenise("..."), Strings{});
  EXPECT_EQ(Tokenise(""), Strings{});
}

TEST(TextTest, StopWordsAndSingleLettersAreDroppedButNotNumbers) {
  EXPECT_EQ(Tokenise("The Return of the King x 7"), (Strings{"return", "king", "7"}));
  EXPECT_EQ(Tokenise("The Return of x", {.stop_words = false, .min_characters = 1}),
            (Strings{"the", "return", "of", "x"}));
  EXPECT_TRUE(IsStopWord("yourself"));
  EXPECT_FALSE(IsStopWord("king"));
}

TEST(TextTest, StemmingIsSnowball) {
  EXPECT_EQ(Tokenise("running cats fairly generously", {.stemming = Stemming::kEnglish}),
            (Strings{"run", "cat", "fair", "generous"}));
}

}  // namespace
}  // namespace codband::data
