#include "codband/report/word_cloud.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

// Words of any length, alphabet and weight.
std::vector<CloudWord> RandomWords(unsigned seed, std::size_t count) {
  constexpr const char* kParts[] = {"ro", "ck", "mm", "W", "i", " ", "é", "щ", "日", "-", "80s"};
  std::mt19937 draw(seed);
  std::vector<CloudWord> words(count);
  for (CloudWord& word : words) {
    const std::size_t parts = 1 + draw() % 8;
    for (std::size_t i = 0; i < parts; ++i) word.text += kParts[draw() % std::size(kParts)];
    word.text += "x";
    word.weight = std::exp(static_cast<double>(draw() % 1000) / 200);
  }
  return words;
}

void ExpectNoOverlap(const std::vector<PlacedWord>& words, double width, double height) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const PlacedWord& a = words[i];
    EXPECT_GE(a.left, 0) << a.text;
    EXPECT_GE(a.top, 0) << a.text;
    EXPECT_LE(a.left + a.width, width) << a.text;
    EXPECT_LE(a.top + a.height, height) << a.text;
    EXPECT_GT(a.baseline, a.top + 0.9 * a.font_size) << a.text;
    EXPECT_LT(a.baseline, a.top + a.height) << a.text;
    for (std::size_t j = 0; j < i; ++j) {
      const PlacedWord& b = words[j];
      const double across = std::min(a.left + a.width, b.left + b.width) - std::max(a.left, b.left);
      const double down = std::min(a.top + a.height, b.top + b.height) - std::max(a.top, b.top);
      EXPECT_FALSE(across > 0 && down > 0) << a.text << " and " << b.text;
    }
  }
}

TEST(WordCloudTest, WordsNeverOverlapOrLeaveTheBox) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::size_t count = 1 + seed % 50;
    const double width = 60 + 11 * seed % 400;
    const double height = 40 + 7 * seed % 300;
    SCOPED_TRACE(fmt::format("seed {}: {} words in {} × {}", seed, count, width, height));
    ExpectNoOverlap(PlaceWords(RandomWords(seed, count), width, height), width, height);
  }
}

TEST(WordCloudTest, FontSizeIsProportionalToTheRootOfTheWeight) {
  const std::vector<CloudWord> words = {{"rock", 100}, {"pop", 49}, {"jazz", 25}, {"folk", 36}};
  const std::vector<PlacedWord> placed = PlaceWords(words, 300, 200);
  ASSERT_EQ(placed.size(), 4U);
  EXPECT_EQ(placed[0].text, "rock");
  EXPECT_EQ(placed[1].text, "pop");
  EXPECT_EQ(placed[2].text, "folk");
  EXPECT_EQ(placed[3].text, "jazz");
  EXPECT_NEAR(placed[1].font_size, 0.7 * placed[0].font_size, 1e-9);
  EXPECT_NEAR(placed[2].font_size, 0.6 * placed[0].font_size, 1e-9);
  EXPECT_NEAR(placed[3].font_size, 0.5 * placed[0].font_size, 1e-9);
  // The heaviest stands in the middle.
  EXPECT_NEAR(placed[0].left + placed[0].width / 2, 150, 1e-9);
  EXPECT_NEAR(placed[0].top + placed[0].height / 2, 100, 1e-9);
}

TEST(WordCloudTest, OrderOfTheWordsChangesNothing) {
  std::vector<CloudWord> words = RandomWords(5, 30);
  words.push_back({"b", 7});
  words.push_back({"a", 7});
  const std::vector<PlacedWord> placed = PlaceWords(words, 260, 200);
  std::ranges::reverse(words);
  const std::vector<PlacedWord> again = PlaceWords(words, 260, 200);
  ASSERT_EQ(placed.size(), again.size());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    EXPECT_EQ(placed[i].text, again[i].text);
    EXPECT_EQ(placed[i].left, again[i].left);
    EXPECT_EQ(placed[i].top, again[i].top);
  }
}

TEST(WordCloudTest, ThirtyWordsFitIntoACell) {
  std::vector<CloudWord> words;
  for (int i = 0; i < 30; ++i) words.push_back({fmt::format("genre {}", i), 100.0 / (i + 1)});
  const std::vector<PlacedWord> placed = PlaceWords(words, 268, 210);
  EXPECT_EQ(placed.size(), 30U);
  EXPECT_GT(placed.front().font_size, 20);
}

TEST(WordCloudTest, LightestWordsAreDroppedAndLongOnesTruncatedWhereTheyDoNotFit) {
  std::vector<CloudWord> words;
  for (int i = 0; i < 200; ++i) words.push_back({fmt::format("word{}", i), 1000.0 - i});
  const std::vector<PlacedWord> placed = PlaceWords(words, 120, 60);
  ASSERT_FALSE(placed.empty());
  EXPECT_LT(placed.size(), 30U);
  EXPECT_EQ(placed[0].text, "word0");
  ExpectNoOverlap(placed, 120, 60);
  const std::vector<CloudWord> wide = {{std::string(100, 'w'), 1}};
  const std::vector<PlacedWord> cut = PlaceWords(wide, 120, 60);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_TRUE(cut[0].text.ends_with("…"));
  ExpectNoOverlap(cut, 120, 60);
  EXPECT_TRUE(PlaceWords(wide, 5, 5).empty());
}

TEST(WordCloudTest, WordsThatCannotBeShownAreLeftOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<CloudWord> words = {
      {"", 1},           {"  ", 1},        {"zero", 0}, {"less", -1}, {"nan", std::nan("")},
      {"inf", infinity}, {"two\nlines", 1}};
  const std::vector<PlacedWord> placed = PlaceWords(words, 200, 100);
  ASSERT_EQ(placed.size(), 1U);
  EXPECT_EQ(placed[0].text, "two lines");
  EXPECT_TRUE(PlaceWords({}, 200, 100).empty());
}

TEST(WordCloudTest, PictureHoldsEveryWordOnceAndEscaped) {
  const std::vector<WordCloud> clouds = {
      {.title = "Group 1", .subtitle = "12 users", .words = {{"r&b", 4}, {"<3", 2}}},
      {.title = "Group 2", .subtitle = "3 users", .words = {{"新宿系", 1}}},
      {.title = "Group 3", .subtitle = "1 user", .words = {}}};
  const std::string svg = RenderSvg("Tags & groups", clouds);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "</title>r&amp;b<"), 1U);
  EXPECT_EQ(Count(svg, "</title>&lt;3<"), 1U);
  EXPECT_EQ(Count(svg, "</title>新宿系<"), 1U);
  EXPECT_EQ(Count(svg, ">12 users<"), 1U);
  EXPECT_EQ(Count(svg, ">no words<"), 1U);
  EXPECT_EQ(svg, RenderSvg("Tags & groups", clouds));
  EXPECT_EQ(XmlError(RenderSvg("none", {})), "");
}

}  // namespace
}  // namespace codband::report
