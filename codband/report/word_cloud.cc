#include "codband/report/word_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>

#include "codband/base/text.h"
#include "codband/report/svg_parts.h"

namespace codband::report {
namespace {

constexpr double kSmallestFont = 9;
// Words too wide at this size are truncated, so that one long word does not shrink all others.
constexpr double kWidestFont = 12;
constexpr double kLargestFont = 44;
// The smallest font size as a share of the largest.
constexpr double kShrink = 0.9;
// Around every word, on each side.
constexpr double kGap = 1.5;
// Ascent and descent in font sizes, accents included.
constexpr double kAscent = 0.98;
constexpr double kDescent = 0.27;

constexpr double kCellGap = 16;
constexpr double kCellWidth = (kSvgWidth - 2 * kSvgMargin - kCellGap) / 2;
constexpr double kCellHeight = 210;
constexpr double kHeadHeight = 44;
// Fills with enough contrast for text, on white and on black.
constexpr int kTextFills[] = {0, 1, 10, 2, 8, 13};

// TextWidth is for labels, where a wide letter does no harm. Words must not overlap, so that wide
// letters and other scripts get more room here.
double WordWidth(std::string_view text, double font_size) {
  double extra = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = DecodeUtf8(text, &i);
    if (c >= 0x250 && c < 0x2E80) extra += 0.25;
  }
  return 1.06 * TextWidth(text, font_size) + extra * font_size;
}

std::string FitWord(const std::string& text, double font_size, double width) {
  std::string fitted = text;
  for (int columns = DisplayWidth(text); WordWidth(fitted, font_size) > width && columns > 1;) {
    fitted = Truncate(text, --columns);
  }
  return fitted;
}

bool Overlap(const PlacedWord& a, const PlacedWord& b) {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height &&
         b.top < a.top + a.height;
}

// The words that can be shown, heaviest first.
std::vector<CloudWord> Usable(std::span<const CloudWord> words, double width) {
  std::vector<CloudWord> usable;
  for (const CloudWord& word : words) {
    CloudWord clean{.text = FitWord(OneLine(word.text), kWidestFont, width - 2 * kGap),
                    .weight = word.weight};
    if (std::isfinite(word.weight) && word.weight > 0 &&
        clean.text.find_first_not_of(' ') != clean.text.npos) {
      usable.push_back(std::move(clean));
    }
  }
  std::ranges::sort(usable, [](const CloudWord& a, const CloudWord& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.text < b.text;
  });
  return usable;
}

class Layout {
 public:
  Layout(double width, double height) : width_(width), height_(height) {}

  // The first free place on a spiral around the centre; false if there is none.
  bool Place(const CloudWord& word, double font_size) {
    PlacedWord placed{.text = word.text, .weight = word.weight, .font_size = font_size};
    placed.width = WordWidth(placed.text, font_size) + 2 * kGap;
    placed.height = (kAscent + kDescent) * font_size + 2 * kGap;
    if (placed.width > width_ || placed.height > height_) return false;
    // Turns are two units apart, steps about two units long, stretched to the aspect ratio of the
    // box: the spiral reaches the corners when the radius is half of the diagonal.
    constexpr double kStep = 2;
    const double stretch = width_ / height_;
    const double farthest = std::numbers::sqrt2 * height_ / 2;
    for (double angle = 0;; angle += kStep / (1 + RadiusAt(angle))) {
      const double radius = RadiusAt(angle);
      if (radius > farthest) return false;
      placed.left = (width_ - placed.width) / 2 + stretch * radius * std::cos(angle);
      placed.top = (height_ - placed.height) / 2 + radius * std::sin(angle);
      if (Free(placed)) break;
    }
    placed.baseline = placed.top + kGap + kAscent * font_size;
    words_.push_back(std::move(placed));
    return true;
  }

  std::vector<PlacedWord> TakeWords() { return std::move(words_); }

 private:
  static double RadiusAt(double angle) { return angle / std::numbers::pi; }

  bool Free(const PlacedWord& word) const {
    return word.left >= 0 && word.top >= 0 && word.left + word.width <= width_ &&
           word.top + word.height <= height_ &&
           std::ranges::none_of(words_,
                                [&](const PlacedWord& other) { return Overlap(word, other); });
  }

  double width_;
  double height_;
  std::vector<PlacedWord> words_;
};

// All words, the heaviest with font size `largest`; nothing if one does not fit and `partly` is not
// set.
std::optional<std::vector<PlacedWord>> Fill(const std::vector<CloudWord>& words, double largest,
                                            double width, double height, bool partly) {
  Layout layout(width, height);
  for (const CloudWord& word : words) {
    const double size =
        std::max(kSmallestFont, largest * std::sqrt(word.weight / words.front().weight));
    if (!layout.Place(word, size) && !partly) return std::nullopt;
  }
  return layout.TakeWords();
}

void DrawCloud(std::string* out, const WordCloud& cloud, double left, double top) {
  DrawText(out, left, top + 16, "style=\"font-weight:600\"",
           FitText(cloud.title, 1.1 * kFontSize, kCellWidth));
  DrawText(out, left, top + 34, "class=\"cb-soft\" style=\"font-size:12px\"",
           FitText(cloud.subtitle, 12, kCellWidth));
  fmt::format_to(std::back_inserter(*out),
                 "<rect class=\"cb-grid\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                 Px(left), Px(top + kHeadHeight), Px(kCellWidth), Px(kCellHeight));
  const std::vector<PlacedWord> words = PlaceWords(cloud.words, kCellWidth, kCellHeight);
  if (words.empty()) {
    DrawText(out, left + kCellWidth / 2, top + kHeadHeight + kCellHeight / 2,
             "class=\"cb-soft\" text-anchor=\"middle\"", "no words");
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const PlacedWord& word = words[i];
    fmt::format_to(std::back_inserter(*out),
                   "<text class=\"cb-f{}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
                   "style=\"font-size:{}px\"><title>{}: {}</title>{}</text>\n",
                   kTextFills[i % std::size(kTextFills)], Px(left + word.left + word.width / 2),
                   Px(top + kHeadHeight + word.baseline), Px(word.font_size), EscapeXml(word.text),
                   FormatNumber(word.weight), EscapeXml(word.text));
  }
}

}  // namespace

std::vector<PlacedWord> PlaceWords(std::span<const CloudWord> words, double width, double height) {
  const std::vector<CloudWord> usable = Usable(words, width);
  if (usable.empty()) return {};
  for (double largest = kLargestFont; largest > kSmallestFont; largest *= kShrink) {
    auto placed = Fill(usable, largest, width, height, false);
    if (placed) return std::move(*placed);
  }
  return std::move(*Fill(usable, kSmallestFont, width, height, true));
}

std::string RenderSvg(const std::string& title, std::span<const WordCloud> clouds) {
  std::string body;
  const double top = DrawTitle(&body, title, "");
  constexpr double kRowHeight = kHeadHeight + kCellHeight + kCellGap;
  for (std::size_t i = 0; i < clouds.size(); ++i) {
    DrawCloud(&body, clouds[i], kSvgMargin + (i % 2 == 0 ? 0 : kCellWidth + kCellGap),
              top + kRowHeight * static_cast<double>(i / 2));
  }
  const double rows = static_cast<double>((clouds.size() + 1) / 2);
  return FinishSvg(top + kRowHeight * rows, title, body);
}

}  // namespace codband::report
