#pragma once

#include <span>
#include <string>
#include <vector>

namespace codband::report {

struct CloudWord {
  std::string text = {};
  double weight = 0;
};

// A placed word: a box that contains its letters in any common sans-serif font.
struct PlacedWord {
  std::string text = {};
  double weight = 0;
  double font_size = 0;
  double left = 0, top = 0, width = 0, height = 0;
  double baseline = 0;
};

// Places words in a box of the given size, in descending order of weight, each as close to the
// centre as the words before it allow. Font size is proportional to the square root of the weight,
// so that the area of a word is proportional to it; the scale is the largest at which all words
// fit, with a legible minimum. Boxes neither overlap nor leave the box. Words with an empty text or
// a weight that is not positive and finite are omitted, as are the lightest ones if not all fit at
// the minimum size; a word wider than the box is truncated with "…". Deterministic: ties are broken
// by text. Takes about ten milliseconds for 30 words.
std::vector<PlacedWord> PlaceWords(std::span<const CloudWord> words, double width, double height);

struct WordCloud {
  std::string title = {};
  std::string subtitle = {};  // below the title, in a lighter colour
  std::vector<CloudWord> words = {};
};

// Clouds, two per row, as one self-contained SVG document like that of RenderSvg (line_chart.h). A
// cloud without words says so. A tooltip shows the weight of a word. Deterministic. Pure;
// thread-safe.
std::string RenderSvg(const std::string& title, std::span<const WordCloud> clouds);

}  // namespace codband::report
