#pragma once

#include <span>
#include <string>
#include <vector>

namespace codband::report {

struct CloudWord {
  std::string text = {};
  double weight = 0;
};

// A word in its place: the box that its letters stay in, whichever sans-serif font draws them.
struct PlacedWord {
  std::string text = {};
  double weight = 0;
  double font_size = 0;
  double left = 0, top = 0, width = 0, height = 0;
  double baseline = 0;
};

// Puts words into a box of the given size, the heaviest first and nearest to the middle, each as
// near to it as those before leave room. The area of a letter grows with the weight: font sizes go
// with its square root, from the largest that lets all words in, and none is smaller than can be
// read. No two boxes overlap, and none leaves the box. Words whose weight is not positive and
// finite, or whose text is empty, are left out, and so are the lightest of those that find no room
// at the smallest size; a word wider than the box ends in "…". Deterministic: equal weights come in
// the order of their texts.
// Takes some ten milliseconds for 30 words.
std::vector<PlacedWord> PlaceWords(std::span<const CloudWord> words, double width, double height);

struct WordCloud {
  std::string title = {};
  std::string subtitle = {};  // below the title, fainter
  std::vector<CloudWord> words = {};
};

// Clouds side by side, two in a row, as one self-contained SVG document like those of line_chart.h.
// A cloud without words says so. The weight shows when the pointer rests on a word. The same clouds
// give the same bytes. Pure; thread-safe.
std::string RenderSvg(const std::string& title, std::span<const WordCloud> clouds);

}  // namespace codband::report
