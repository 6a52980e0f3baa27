#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codband/report/axis.h"

namespace codband::report {

// The parts that all charts share: style sheet, palette, title, axes, legend. Internal to report/.
// Functions append SVG elements to `out`; lengths are in user units of a picture kSvgWidth wide.
//
// Charts have no ids, and their style sheet is one constant scoped to the class "cb-chart", so that
// any number of them can share an HTML page. Colours are classes: dark mode is a media query, which
// renderers without media queries (rsvg-convert) ignore.

inline constexpr double kSvgWidth = 560;
inline constexpr double kSvgMargin = 4;
inline constexpr double kPlotMargin =
    22;  // right of the plot: room for half of the last tick label
inline constexpr double kFontSize = 14;
inline constexpr int kColourCount = 7;  // Okabe–Ito without yellow, too faint for a line on white
inline constexpr int kFillCount = 14;   // areas allow more, and fainter, colours

struct PlotArea {
  double left = 0, top = 0, width = 0, height = 0;
  double X(const Axis& axis, double value) const { return left + width * axis.Position(value); }
  double Y(const Axis& axis, double value) const {
    return top + height * (1 - axis.Position(value));
  }
};

struct LegendEntry {
  std::string name;
  std::string symbol;  // SVG in a box 26 wide, 14 high, with its origin at the left middle
};

// A length or a coordinate with at most one decimal: small files, reproducible bytes.
std::string Px(double value);

// An upper bound of the width of a text in the default fonts of browsers and rsvg-convert.
double TextWidth(std::string_view text, double font_size);

// The text, truncated with "…" if it is wider than `width`.
std::string FitText(std::string_view text, double font_size, double width);

// One <text>. `attributes` is raw SVG; the text is escaped.
void DrawText(std::string* out, double x, double y, std::string_view attributes,
              std::string_view text);

// The title, wrapped, and the label of the y axis below it. Returns the y below both.
double DrawTitle(std::string* out, std::string_view title, std::string_view y_label);

// Ticks and labels below the plot area. Returns the y below them.
double DrawXAxis(std::string* out, const PlotArea& area, const Axis& axis, std::string_view label);

// Grid lines, with labels to the left of the plot area.
void DrawYAxis(std::string* out, const PlotArea& area, const std::vector<Tick>& ticks,
               const Axis& axis);

// All entries, in as many columns as fit the width, filled column by column. Returns the y below
// the legend.
double DrawLegend(std::string* out, double top, const std::vector<LegendEntry>& entries);

// The complete document: root element, style sheet, background, `body`.
std::string FinishSvg(double height, std::string_view title, std::string_view body);

}  // namespace codband::report
