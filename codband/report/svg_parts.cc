#include "codband/report/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "codband/base/text.h"

namespace codband::report {
namespace {

constexpr double kTitleSize = 16;
constexpr double kLineHeight = 20;
constexpr double kSymbolWidth = 26;
constexpr double kLegendGap = 16;

// .cb-c*: colour of a line or an outline; .cb-f*: fill; .cb-d*: dash pattern of the second and
// third pass through the colours; n: neutral; .cb-halo: separates a mark from the colour below it.
constexpr std::string_view kSvgStyle =
    R"css(.cb-chart{max-width:40rem;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:14px}
.cb-chart text{fill:#2b3038}
.cb-chart .cb-title{font-size:16px;font-weight:600}
.cb-chart .cb-soft{fill:#59626e}
.cb-chart .cb-bg{fill:#fff}
.cb-chart .cb-grid{stroke:#e3e6ea;fill:none}
.cb-chart .cb-axis{stroke:#8a929d;fill:none}
.cb-chart .cb-line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:butt}
.cb-chart .cb-dashed{stroke-width:1.6;stroke-dasharray:6 4}
.cb-chart .cb-strong{stroke-width:4}
.cb-chart .cb-end{font-weight:700;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.cb-chart .cb-d1{stroke-dasharray:10 3 2 3}
.cb-chart .cb-d2{stroke-dasharray:2.5 2.5}
.cb-chart .cb-band{fill-opacity:.16}
.cb-chart .cb-none{fill-opacity:.25}
.cb-chart .cb-hit{fill:none;pointer-events:all}
.cb-chart .cb-halo{stroke:#fff;stroke-width:2.4;fill:none}
.cb-chart .cb-mark{stroke:#000;stroke-width:1.1;fill:none}
.cb-chart .cb-c0{stroke:#0072b2}.cb-chart .cb-f0{fill:#0072b2}
.cb-chart .cb-c1{stroke:#d55e00}.cb-chart .cb-f1{fill:#d55e00}
.cb-chart .cb-c2{stroke:#009e73}.cb-chart .cb-f2{fill:#009e73}
.cb-chart .cb-c3{stroke:#cc79a7}.cb-chart .cb-f3{fill:#cc79a7}
.cb-chart .cb-c4{stroke:#e69f00}.cb-chart .cb-f4{fill:#e69f00}
.cb-chart .cb-c5{stroke:#56b4e9}.cb-chart .cb-f5{fill:#56b4e9}
.cb-chart .cb-c6{stroke:#33373d}.cb-chart .cb-f6{fill:#33373d}
.cb-chart .cb-f7{fill:#f0e442}.cb-chart .cb-f8{fill:#8c4a1f}
.cb-chart .cb-f9{fill:#a8e0cf}.cb-chart .cb-f10{fill:#1b3f73}
.cb-chart .cb-f11{fill:#f4c4d9}.cb-chart .cb-f12{fill:#a7adb5}.cb-chart .cb-f13{fill:#6b4c9a}
.cb-chart .cb-cn{stroke:#8a929d}.cb-chart .cb-fn{fill:#8a929d}
@media (prefers-color-scheme:dark){
.cb-chart text{fill:#e4e7eb}
.cb-chart .cb-soft{fill:#9aa4b0}
.cb-chart .cb-bg{fill:#16181d}
.cb-chart .cb-grid{stroke:#2d323a}
.cb-chart .cb-axis{stroke:#7b8490}
.cb-chart .cb-halo,.cb-chart .cb-end{stroke:#16181d}
.cb-chart .cb-mark{stroke:#fff}
.cb-chart .cb-c0{stroke:#3585d6}.cb-chart .cb-f0{fill:#3585d6}
.cb-chart .cb-c1{stroke:#ec7426}.cb-chart .cb-f1{fill:#ec7426}
.cb-chart .cb-c2{stroke:#1fb88b}.cb-chart .cb-f2{fill:#1fb88b}
.cb-chart .cb-c3{stroke:#dc93bb}.cb-chart .cb-f3{fill:#dc93bb}
.cb-chart .cb-c5{stroke:#8fd0f5}.cb-chart .cb-f5{fill:#8fd0f5}
.cb-chart .cb-c6{stroke:#e8eaed}.cb-chart .cb-f6{fill:#e8eaed}
.cb-chart .cb-f8{fill:#b8733f}.cb-chart .cb-f10{fill:#5a74c4}.cb-chart .cb-f13{fill:#9277c9}
}
)css";

std::vector<std::string> Wrap(std::string_view text, double font_size, double width) {
  std::vector<std::string> lines;
  std::string line;
  const std::string flat = OneLine(text);
  for (std::size_t begin = 0; begin < flat.size();) {
    const std::size_t end = std::min(flat.find(' ', begin), flat.size());
    const std::string word = flat.substr(begin, end - begin);
    if (!line.empty() && TextWidth(line + ' ' + word, font_size) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

// The widest name of each of `columns` columns, filled column by column.
std::vector<double> LegendColumns(const std::vector<double>& widths, std::size_t columns) {
  const std::size_t rows = (widths.size() + columns - 1) / columns;
  std::vector<double> result;
  for (std::size_t begin = 0; begin < widths.size(); begin += rows) {
    const auto first = widths.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        widths.begin() + static_cast<std::ptrdiff_t>(std::min(begin + rows, widths.size()));
    result.push_back(kSymbolWidth + 8 + *std::max_element(first, last) + kLegendGap);
  }
  return result;
}

}  // namespace

std::string Px(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double TextWidth(std::string_view text, double font_size) {
  double ems = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = DecodeUtf8(text, &i);
    const auto in = [c](std::string_view set) {
      return c < 0x80 && set.find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (in("ijlftrI.,:;|!'()[]/- ")) {
      ems += 0.4;
    } else if (in("mwMW@%=+<>")) {
      ems += 0.95;
    } else {
      ems += c >= 0x2E80 ? 1.0 : in("ABCDEFGHJKLNOPQRSTUVXYZ&#") ? 0.75 : 0.63;
    }
  }
  return ems * font_size;
}

std::string FitText(std::string_view text, double font_size, double width) {
  std::string fitted = OneLine(text);
  for (int columns = DisplayWidth(fitted); TextWidth(fitted, font_size) > width && columns > 1;) {
    fitted = Truncate(OneLine(text), --columns);
  }
  return fitted;
}

void DrawText(std::string* out, double x, double y, std::string_view attributes,
              std::string_view text) {
  fmt::format_to(std::back_inserter(*out), "<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", Px(x), Px(y),
                 attributes.empty() ? "" : " ", attributes, EscapeXml(text));
}

double DrawTitle(std::string* out, std::string_view title, std::string_view y_label) {
  constexpr double kWidth = kSvgWidth - 2 * kSvgMargin;
  double y = 6;
  // Bold is about a tenth wider.
  for (const std::string& line : Wrap(title, 1.1 * kTitleSize, kWidth)) {
    y += kLineHeight;
    DrawText(out, kSvgMargin, y, "class=\"cb-title\"", FitText(line, 1.1 * kTitleSize, kWidth));
  }
  for (const std::string& line : Wrap(y_label, kFontSize, kWidth)) {
    y += kLineHeight;
    DrawText(out, kSvgMargin, y, "class=\"cb-soft\"", FitText(line, kFontSize, kWidth));
  }
  return y + (y_label.empty() ? 16 : 18);
}

double DrawXAxis(std::string* out, const PlotArea& area, const Axis& axis, std::string_view label) {
  std::vector<Tick> ticks;
  for (int most = 8; most >= 2; --most) {
    ticks = axis.Ticks(most);
    double widest = 0;
    for (const Tick& tick : ticks) widest = std::max(widest, TextWidth(tick.label, kFontSize));
    if ((widest + 14) * static_cast<double>(ticks.size()) <= area.width) break;
  }
  const double bottom = area.top + area.height;
  std::string path = fmt::format("M{} {}h{}", Px(area.left), Px(bottom), Px(area.width));
  for (const Tick& tick : ticks) {
    path += fmt::format("M{} {}v5", Px(area.X(axis, tick.value)), Px(bottom));
  }
  fmt::format_to(std::back_inserter(*out), "<path class=\"cb-axis\" d=\"{}\"/>\n", path);
  for (const Tick& tick : ticks) {
    const double half = TextWidth(tick.label, kFontSize) / 2;
    const double x = std::min(area.X(axis, tick.value), kSvgWidth - 2 - half);
    DrawText(out, x, bottom + kLineHeight, "text-anchor=\"middle\"", tick.label);
  }
  double y = bottom + kLineHeight;
  if (!label.empty()) {
    y += kLineHeight + 1;
    DrawText(out, area.left + area.width / 2, y, "class=\"cb-soft\" text-anchor=\"middle\"",
             FitText(label, kFontSize, area.width));
  }
  return y + 8;
}

void DrawYAxis(std::string* out, const PlotArea& area, const std::vector<Tick>& ticks,
               const Axis& axis) {
  std::string path;
  for (const Tick& tick : ticks) {
    path += fmt::format("M{} {}h{}", Px(area.left), Px(area.Y(axis, tick.value)), Px(area.width));
  }
  fmt::format_to(std::back_inserter(*out), "<path class=\"cb-grid\" d=\"{}\"/>\n", path);
  for (const Tick& tick : ticks) {
    DrawText(out, area.left - 7, area.Y(axis, tick.value) + 5, "text-anchor=\"end\"", tick.label);
  }
}

double DrawLegend(std::string* out, double top, const std::vector<LegendEntry>& entries) {
  if (entries.empty()) return top;
  constexpr double kWidth = kSvgWidth - 2 * kSvgMargin + kLegendGap;
  std::vector<std::string> names;
  std::vector<double> widths;
  for (const LegendEntry& entry : entries) {
    names.push_back(FitText(entry.name, kFontSize, kWidth - kSymbolWidth - 8 - kLegendGap));
    widths.push_back(TextWidth(names.back(), kFontSize));
  }
  std::vector<double> columns;
  for (std::size_t count = std::min<std::size_t>(5, entries.size()); count >= 1; --count) {
    columns = LegendColumns(widths, count);
    double sum = 0;
    for (const double width : columns) sum += width;
    if (sum <= kWidth) break;
  }
  const std::size_t rows = (entries.size() + columns.size() - 1) / columns.size();
  double x = kSvgMargin;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && i % rows == 0) x += columns[i / rows - 1];
    const double y = top + kLineHeight * (static_cast<double>(i % rows) + 0.5);
    fmt::format_to(std::back_inserter(*out), "<g transform=\"translate({} {})\">{}</g>\n", Px(x),
                   Px(y), entries[i].symbol);
    DrawText(out, x + kSymbolWidth + 8, y + 5, "", names[i]);
  }
  return top + kLineHeight * static_cast<double>(rows);
}

std::string FinishSvg(double height, std::string_view title, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"cb-chart\" viewBox=\"0 0 {0} {1}\" "
      "width=\"100%\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
      "<rect class=\"cb-bg\" width=\"{0}\" height=\"{1}\"/>\n{4}</svg>\n",
      Px(kSvgWidth), Px(std::ceil(height)), EscapeXml(OneLine(title)), kSvgStyle, body);
}

}  // namespace codband::report
