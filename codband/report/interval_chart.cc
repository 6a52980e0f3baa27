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

Axis ValueAxis(const IntervalChart& chart) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double outer_low = low;
  double outer_high = high;
  for (const IntervalRow& row : chart.rows) {
    for (const IntervalMark& mark : row.marks) {
      if (!Drawable(mark.value, Scale::kLinear)) continue;
      low = std::min({low, mark.value, Both(mark.low, mark.high) ? mark.low : mark.value});
      high = std::max({high, mark.value, Both(mark.low, mark.high) ? mark.high : mark.value});
      if (!Both(mark.outer_low, mark.outer_high)) continue;
      outer_low = std::min(outer_low, mark.outer_low);
      outer_high = std::max(outer_high, mark.outer_high);
    }
  }
  const double room = (kMostStretch - 1) / 2 * std::max(high - low, 1e-12);
  return {Scale::kLinear, std::min(low, std::max(outer_low, low - room)),
          std::max(high, std::min(outer_high, high + room))};
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
  legend.push_back({chart.inner_name,
                    "<path class=\"cb-line cb-cn\" style=\"stroke-width:4\" d=\"M0 0L26 0\"/>"});
  legend.push_back({chart.outer_name,
                    "<path class=\"cb-line cb-cn\" style=\"stroke-width:1\" d=\"M0 0L26 0\"/>"});
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
