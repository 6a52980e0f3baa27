#include "codband/report/interval_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "codband/base/text.h"
#include "codband/report/axis.h"
#include "codband/report/svg_parts.h"

namespace codband::report {
namespace {

constexpr double kMarkHeight = 15;
constexpr double kRowGap = 12;
constexpr double kWidestIntervalLabel = 170;
// Thin lines may stretch the axis to at most this multiple of what values and thick lines need.
constexpr double kMostStretch = 2.5;

bool Both(double low, double high) {
  return Drawable(low, Scale::kLinear) && Drawable(high, Scale::kLinear) && low <= high;
}

// The values that the axis is made for: all but those far from the bulk of them. A useless row must
// not press the others into one point.
std::vector<double> CoreValues(const IntervalChart& chart) {
  constexpr double kFar = 4;  // in widths of the middle half
  std::vector<double> values;
  for (const IntervalRow& row : chart.rows) {
    for (const IntervalMark& mark : row.marks) {
      if (Drawable(mark.value, Scale::kLinear)) values.push_back(mark.value);
    }
  }
  std::ranges::sort(values);
  if (values.size() < 4) return values;
  double lower = values[values.size() / 4];
  double upper = values[values.size() - 1 - values.size() / 4];
  if (chart.reference) {
    lower = std::min(lower, *chart.reference);
    upper = std::max(upper, *chart.reference);
  }
  const double far = kFar * (upper - lower);
  if (far <= 0) return values;
  std::erase_if(values, [&](double v) { return v < lower - far || v > upper + far; });
  return values;
}

// Intervals may stretch the axis to at most kMostStretch times what the values need, or what the
// narrowest of them needs if that is more.
Axis ValueAxis(const IntervalChart& chart) {
  const std::vector<double> values = CoreValues(chart);
  if (values.empty()) return {Scale::kLinear, 0, 1};
  const double low = std::min(values.front(), chart.reference.value_or(values.front()));
  const double high = std::max(values.back(), chart.reference.value_or(values.back()));
  double end_low = low;
  double end_high = high;
  double narrowest = std::numeric_limits<double>::infinity();
  for (const IntervalRow& row : chart.rows) {
    for (const IntervalMark& mark : row.marks) {
      if (mark.value < low || mark.value > high) continue;
      if (Both(mark.low, mark.high)) {
        narrowest = std::min(narrowest, mark.high - mark.low);
        end_low = std::min(end_low, mark.low);
        end_high = std::max(end_high, mark.high);
      }
      if (!Both(mark.outer_low, mark.outer_high)) continue;
      end_low = std::min(end_low, mark.outer_low);
      end_high = std::max(end_high, mark.outer_high);
    }
  }
  const double needed = std::max(high - low, std::isfinite(narrowest) ? 2 * narrowest : 0);
  const double room = (kMostStretch - 1) / 2 * std::max(needed, 1e-12);
  return {Scale::kLinear, std::max(end_low, low - room), std::min(end_high, high + room)};
}

void DrawMark(std::string* out, const IntervalChart& chart, const IntervalRow& row,
              const IntervalMark& mark, const PlotArea& area, const Axis& axis, double y) {
  const int colour = mark.series % kColourCount;
  const auto x = [&](double value) {
    return area.X(axis, std::clamp(value, axis.low(), axis.high()));
  };
  const auto add = [&](std::string_view text) { *out += text; };
  const auto series = static_cast<std::size_t>(mark.series);
  const std::string name = series < chart.series.size() ? chart.series[series] : "";
  add(fmt::format("<g><title>{} {}: {}", EscapeXml(row.label), EscapeXml(name),
                  FormatNumber(mark.value)));
  if (Both(mark.low, mark.high)) {
    add(fmt::format(", {} – {}", FormatNumber(mark.low), FormatNumber(mark.high)));
  }
  if (Both(mark.outer_low, mark.outer_high)) {
    add(fmt::format(" ({} – {})", FormatNumber(mark.outer_low), FormatNumber(mark.outer_high)));
  }
  add("</title>");
  if (Both(mark.outer_low, mark.outer_high)) {
    std::string path =
        fmt::format("M{} {}L{} {}", Px(x(mark.outer_low)), Px(y), Px(x(mark.outer_high)), Px(y));
    if (mark.outer_low < axis.low()) {
      path += fmt::format("M{} {}l-4 3l4 3", Px(x(mark.outer_low) + 4), Px(y - 3));
    }
    if (mark.outer_high > axis.high()) {
      path += fmt::format("M{} {}l4 3l-4 3", Px(x(mark.outer_high) - 4), Px(y - 3));
    }
    add(
        fmt::format("<path class=\"cb-line cb-c{}\" style=\"stroke-width:1\" "
                    "d=\"{}\"/>",
                    colour, path));
  }
  if (Both(mark.low, mark.high)) {
    add(fmt::format("<path class=\"cb-line cb-c{}\" style=\"stroke-width:4\" d=\"M{} {}L{} {}\"/>",
                    colour, Px(x(mark.low)), Px(y), Px(x(mark.high)), Px(y)));
  }
  if (mark.value < axis.low() || mark.value > axis.high()) {
    const double side = mark.value < axis.low() ? 1 : -1;
    add(fmt::format("<path class=\"cb-f{}\" d=\"M{} {}l{} -5v10z\"/></g>\n", colour,
                    Px(x(mark.value)), Px(y), Px(side * 8)));
    return;
  }
  add(fmt::format("<circle class=\"cb-f{}\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/></g>\n", colour,
                  Px(x(mark.value)), Px(y)));
}

std::vector<LegendEntry> Legend(const IntervalChart& chart) {
  std::vector<LegendEntry> legend;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    legend.push_back(
        {chart.series[s], fmt::format("<circle class=\"cb-f{}\" cx=\"13\" cy=\"0\" r=\"4.5\"/>",
                                      static_cast<int>(s) % kColourCount)});
  }
  bool inner = false;
  bool outer = false;
  for (const IntervalRow& row : chart.rows) {
    for (const IntervalMark& mark : row.marks) {
      inner = inner || Both(mark.low, mark.high);
      outer = outer || Both(mark.outer_low, mark.outer_high);
    }
  }
  const auto add = [&](const std::string& name, int width) {
    legend.push_back({name, fmt::format("<path class=\"cb-line cb-cn\" style=\"stroke-width:{}\" "
                                        "d=\"M0 0L26 0\"/>",
                                        width)});
  };
  if (inner) add(chart.inner_name, 4);
  if (outer) add(chart.outer_name, 1);
  return legend;
}

}  // namespace

std::string RenderSvg(const IntervalChart& chart) {
  std::string body;
  PlotArea area;
  area.top = DrawTitle(&body, chart.title, "");
  double label_width = 0;
  for (const IntervalRow& row : chart.rows) {
    area.height += kMarkHeight * static_cast<double>(std::max<std::size_t>(1, row.marks.size()));
    area.height += kRowGap;
    label_width = std::max(label_width, TextWidth(row.label, kFontSize));
  }
  area.height = std::max(area.height, 3 * kMarkHeight);
  area.left = kSvgMargin + std::min(label_width, kWidestIntervalLabel) + 9;
  area.width = kSvgWidth - kPlotMargin - area.left;
  const Axis axis = ValueAxis(chart);
  std::string grid;
  for (const Tick& tick : axis.Ticks(8)) {
    grid += fmt::format("M{} {}v{}", Px(area.X(axis, tick.value)), Px(area.top), Px(area.height));
  }
  body += fmt::format("<path class=\"cb-grid\" d=\"{}\"/>\n", grid);
  if (chart.reference) {
    body += fmt::format("<path class=\"cb-axis\" d=\"M{} {}v{}\"/>\n",
                        Px(area.X(axis, *chart.reference)), Px(area.top), Px(area.height));
  }
  double y = area.top;
  bool any = false;
  for (const IntervalRow& row : chart.rows) {
    const double height =
        kMarkHeight * static_cast<double>(std::max<std::size_t>(1, row.marks.size()));
    DrawText(&body, area.left - 9, y + (kRowGap + height) / 2 + 5, "text-anchor=\"end\"",
             FitText(row.label, kFontSize, kWidestIntervalLabel));
    y += kRowGap / 2;
    for (const IntervalMark& mark : row.marks) {
      if (Drawable(mark.value, Scale::kLinear)) {
        any = true;
        DrawMark(&body, chart, row, mark, area, axis, y + kMarkHeight / 2);
      }
      y += kMarkHeight;
    }
    if (row.marks.empty()) y += kMarkHeight;
    y += kRowGap / 2;
  }
  if (!any) {
    DrawText(&body, area.left + area.width / 2, area.top + area.height / 2,
             "class=\"cb-soft\" text-anchor=\"middle\"", "no data");
  }
  const double axis_bottom = DrawXAxis(&body, area, axis, chart.x_label);
  const double bottom = DrawLegend(&body, axis_bottom + 4, Legend(chart));
  return FinishSvg(bottom + kSvgMargin, chart.title, body);
}

}  // namespace codband::report
