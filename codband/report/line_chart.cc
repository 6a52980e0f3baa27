#include "codband/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "codband/base/text.h"
#include "codband/report/svg_parts.h"

namespace codband::report {
namespace {

constexpr double kPlotHeight = 290;
constexpr std::size_t kHoverPoints = 60;

struct Point {
  double x, y;  // on the picture
  std::size_t index;
};
using PointRun = std::vector<Point>;  // consecutive points without a gap

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Add(double value, Scale scale) {
    if (!Drawable(value, scale)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

void Validate(const LineSeries& series) {
  const std::size_t n = series.x.size();
  const bool band = !series.low.empty() || !series.high.empty();
  if (series.y.size() != n || (band && (series.low.size() != n || series.high.size() != n))) {
    throw std::invalid_argument(
        fmt::format("[RenderSvg] series '{}' has {} x, {} y, {} low and {} high values",
                    series.name, n, series.y.size(), series.low.size(), series.high.size()));
  }
}

// The colour index of a series, or neutral.
struct Style {
  int number;
  std::string Colour(char kind) const {
    return number < 0 ? fmt::format("cb-{}n", kind)
                      : fmt::format("cb-{}{}", kind, number % kColourCount);
  }
  std::string Line(const LineSeries& series) const {
    std::string classes = "cb-line " + Colour('c');
    const int round = number < 0 ? 0 : number / kColourCount % 3;
    if (series.strong) {
      classes += " cb-strong";
    } else if (series.dashed) {
      classes += " cb-dashed";
    } else if (round > 0) {
      classes += fmt::format(" cb-d{}", round);
    }
    return classes;
  }
  std::string Marker(double x, double y) const {
    const std::string at = fmt::format("M{} ", Px(x));
    switch (number < 0 ? 0 : number % 5) {
      case 0:
        return fmt::format("M{} {}a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", Px(x - 3.6), Px(y));
      case 1:
        return fmt::format("M{} {}h6.4v6.4h-6.4z", Px(x - 3.2), Px(y - 3.2));
      case 2:
        return at + fmt::format("{}l4.2 7.4h-8.4z", Px(y - 4.4));
      case 3:
        return at + fmt::format("{}l4.6 4.6l-4.6 4.6l-4.6 -4.6z", Px(y - 4.6));
      default:
        return at + fmt::format("{}l4.2 -7.4h-8.4z", Px(y + 4.4));
    }
  }
};

std::vector<PointRun> SplitAtGaps(const LineSeries& series, const PlotArea& area,
                                  const Axis& x_axis, const Axis& y_axis) {
  std::vector<PointRun> runs(1);
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (Drawable(series.x[i], x_axis.scale()) && Drawable(series.y[i], y_axis.scale())) {
      runs.back().push_back({area.X(x_axis, series.x[i]), area.Y(y_axis, series.y[i]), i});
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

// Downsampling: of the points in one column of pixels, the first, lowest, highest and last draw the
// same picture as all of them.
PointRun Thin(const PointRun& run) {
  PointRun out;
  for (std::size_t begin = 0; begin < run.size();) {
    std::size_t end = begin + 1;
    while (end < run.size() && std::floor(run[end].x) == std::floor(run[begin].x)) ++end;
    const auto first = run.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = run.begin() + static_cast<std::ptrdiff_t>(end);
    const auto [low, high] =
        std::minmax_element(first, last, [](const Point& a, const Point& b) { return a.y < b.y; });
    std::vector<std::size_t> keep = {first->index, low->index, high->index, (last - 1)->index};
    std::sort(keep.begin(), keep.end());
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
    for (const std::size_t index : keep) out.push_back(run[index - run.front().index]);
    begin = end;
  }
  return out;
}

std::string LinePath(const std::vector<PointRun>& runs) {
  std::string path;
  for (const PointRun& run : runs) {
    char command = 'M';
    for (const Point& point : Thin(run)) {
      path += fmt::format("{}{} {}", command, Px(point.x), Px(point.y));
      command = 'L';
    }
  }
  return path;
}

std::string BandPath(const LineSeries& series, const std::vector<PointRun>& runs,
                     const PlotArea& area, const Axis& y_axis) {
  const auto edge = [&](double value, double otherwise) {
    return Drawable(value, y_axis.scale()) ? area.Y(y_axis, value) : otherwise;
  };
  std::string path;
  for (const PointRun& run : runs) {
    const PointRun thin = Thin(run);
    char command = 'M';
    for (const Point& point : thin) {
      const double high = series.high[point.index];
      path += fmt::format("{}{} {}", command, Px(point.x),
                          Px(edge(high, std::isnan(high) ? point.y : area.top)));
      command = 'L';
    }
    for (auto point = thin.rbegin(); point != thin.rend(); ++point) {
      const double low = series.low[point->index];
      path += fmt::format("L{} {}", Px(point->x),
                          Px(edge(low, std::isnan(low) ? point->y : area.top + area.height)));
    }
    path += 'z';
  }
  return path;
}

// Points at least `spacing` apart along the line.
std::vector<Point> Sparse(const std::vector<PointRun>& runs, double spacing) {
  std::vector<Point> out;
  for (const PointRun& run : runs) {
    for (const Point& point : run) {
      if (out.empty() || std::hypot(point.x - out.back().x, point.y - out.back().y) >= spacing) {
        out.push_back(point);
      }
    }
  }
  return out;
}

void DrawHover(std::string* out, const std::string& x_label, const LineSeries& series,
               const std::vector<PointRun>& runs, const PlotArea& area) {
  const std::vector<Point> points = Sparse(runs, area.width / kHoverPoints);
  const std::size_t stride = (points.size() + kHoverPoints - 1) / kHoverPoints;
  if (points.empty()) return;
  *out += "<g class=\"cb-hit\">\n";
  for (std::size_t i = 0; i < points.size(); i += stride) {
    const Point& point = points[i];
    std::string text =
        fmt::format("{}\n{} {}: {}", series.name, x_label.empty() ? "x" : x_label,
                    FormatNumber(series.x[point.index]), FormatNumber(series.y[point.index]));
    if (!series.low.empty() && std::isfinite(series.low[point.index]) &&
        std::isfinite(series.high[point.index])) {
      text += fmt::format(" ({} – {})", FormatNumber(series.low[point.index]),
                          FormatNumber(series.high[point.index]));
    }
    fmt::format_to(std::back_inserter(*out),
                   "<circle cx=\"{}\" cy=\"{}\" r=\"6\"><title>{}</title></circle>\n", Px(point.x),
                   Px(point.y), EscapeXml(text));
  }
  *out += "</g>\n";
}

void DrawSeries(std::string* out, const LineSeries& series, const Style& style,
                const std::vector<PointRun>& runs) {
  std::string markers;
  for (const PointRun& run : runs) {
    // A line needs two points; an isolated one would be invisible.
    if (series.draw == SeriesDraw::kLine && run.size() > 1) continue;
    for (const Point& point : run) markers += style.Marker(point.x, point.y);
  }
  if (series.draw == SeriesDraw::kLine) {
    fmt::format_to(std::back_inserter(*out), "<path class=\"{}\" d=\"{}\"/>\n", style.Line(series),
                   LinePath(runs));
  }
  if (!markers.empty()) {
    fmt::format_to(std::back_inserter(*out), "<path class=\"{}\" d=\"{}\"/>\n", style.Colour('f'),
                   markers);
  }
}

std::string Symbol(const LineSeries& series, const Style& style) {
  std::string symbol;
  if (series.draw == SeriesDraw::kLine) {
    symbol += fmt::format("<path class=\"{}\" d=\"M0 0h26\"/>", style.Line(series));
  } else {
    symbol += fmt::format("<path class=\"{}\" d=\"{}\"/>", style.Colour('f'), style.Marker(13, 0));
  }
  return symbol;
}

// The name of a series at the end of its line, on the side with more room.
void DrawEndLabel(std::string* out, const LineSeries& series, const std::vector<PointRun>& runs,
                  const PlotArea& area) {
  const Point& end = runs.back().back();
  const double y = end.y > area.top + area.height / 2 ? end.y - 9 : end.y + 19;
  DrawText(out, end.x, y, "class=\"cb-end\" text-anchor=\"end\"", series.name);
}

Axis XAxis(const LineChart& chart) {
  Extent extent;
  for (const LineSeries& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (Drawable(series.y[i], chart.y_scale)) extent.Add(series.x[i], chart.x_scale);
    }
  }
  return {chart.x_scale, extent.low, extent.high};
}

Axis YAxis(const LineChart& chart) {
  Extent extent;
  for (const LineSeries& series : chart.series) {
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!Drawable(series.x[i], chart.x_scale) || !Drawable(series.y[i], chart.y_scale)) continue;
      extent.Add(series.y[i], chart.y_scale);
      if (series.low.empty()) continue;
      extent.Add(series.high[i], chart.y_scale);
      // A band that comes near zero must not stretch a log axis over empty decades.
      if (chart.y_scale == Scale::kLinear || series.low[i] >= 0.1 * series.y[i]) {
        extent.Add(series.low[i], chart.y_scale);
      }
    }
  }
  return {chart.y_scale, extent.low, extent.high};
}

}  // namespace

std::string RenderSvg(const LineChart& chart) {
  for (const LineSeries& series : chart.series) Validate(series);
  std::string body;
  PlotArea area;
  area.top = DrawTitle(&body, chart.title, chart.y_label);
  area.height = kPlotHeight;
  const Axis x_axis = XAxis(chart);
  const Axis y_axis = YAxis(chart);
  const std::vector<Tick> y_ticks = y_axis.Ticks(chart.y_scale == Scale::kLog ? 9 : 7);
  double label_width = 0;
  for (const Tick& tick : y_ticks) {
    label_width = std::max(label_width, TextWidth(tick.label, kFontSize));
  }
  area.left = kSvgMargin + label_width + 7;
  area.width = kSvgWidth - kPlotMargin - area.left;
  DrawYAxis(&body, area, y_ticks, y_axis);
  const double axis_bottom = DrawXAxis(&body, area, x_axis, chart.x_label);

  std::string bands;
  std::string lines;
  std::string front;
  std::string hover;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSeries& series = chart.series[i];
    const Style style{series.colour == kAutoColour ? static_cast<int>(i) : series.colour};
    const std::vector<PointRun> runs = SplitAtGaps(series, area, x_axis, y_axis);
    if (!series.low.empty() && !runs.empty()) {
      bands += fmt::format("<path class=\"cb-band {}\" d=\"{}\"/>\n", style.Colour('f'),
                           BandPath(series, runs, area, y_axis));
    }
    if (!runs.empty()) DrawSeries(series.strong ? &front : &lines, series, style, runs);
    if (!runs.empty() && series.strong) DrawEndLabel(&front, series, runs, area);
    DrawHover(&hover, chart.x_label, series, runs, area);
    if (!series.name.empty()) legend.push_back({series.name, Symbol(series, style)});
  }
  body += bands + lines + front + hover;
  if (lines.empty() && front.empty()) {
    DrawText(&body, area.left + area.width / 2, area.top + area.height / 2,
             "class=\"cb-soft\" text-anchor=\"middle\"", "no data");
  }
  const double bottom = DrawLegend(&body, axis_bottom + 4, legend);
  return FinishSvg(bottom + kSvgMargin, chart.title, body);
}

}  // namespace codband::report
