#include "codband/report/strip_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "codband/base/text.h"
#include "codband/report/axis.h"
#include "codband/report/svg_parts.h"

namespace codband::report {
namespace {

constexpr double kTallestPlot = 480;
constexpr double kTallestRow = 24;
constexpr double kThinnestRow = 3;
constexpr double kWidestStripLabel = 130;
constexpr double kLabelSpacing = 18;
constexpr std::size_t kLegendCategories = 20;

bool Visible(const StripSegment& segment) {
  return Drawable(segment.begin, Scale::kLinear) && Drawable(segment.end, Scale::kLinear) &&
         segment.begin < segment.end;
}

std::vector<StripSegment> Joined(const std::vector<StripSegment>& segments) {
  std::vector<StripSegment> out;
  for (const StripSegment& segment : segments) {
    if (!Visible(segment)) continue;
    if (!out.empty() && out.back().category == segment.category &&
        out.back().end == segment.begin) {
      out.back().end = segment.end;
    } else {
      out.push_back(segment);
    }
  }
  return out;
}

std::string FillClass(int category) {
  return category < 0 ? "cb-fn cb-none" : fmt::format("cb-f{}", category % kFillCount);
}

std::string CategoryName(const StripChart& chart, int category) {
  if (category < 0) return "none";
  const auto index = static_cast<std::size_t>(category);
  if (index < chart.category_names.size()) return chart.category_names[index];
  return fmt::format("{} {}", chart.category_word, category);
}

Axis TimeAxis(const StripChart& chart) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const StripRow& row : chart.rows) {
    for (const StripSegment& segment : row.segments) {
      if (!Visible(segment)) continue;
      low = std::min(low, segment.begin);
      high = std::max(high, segment.end);
    }
    for (const double mark : row.marks) {
      if (!Drawable(mark, Scale::kLinear)) continue;
      low = std::min(low, mark);
      high = std::max(high, mark);
    }
  }
  return {Scale::kLinear, low, high};
}

// The step between labelled rows that leaves room for the text: 1, 2, 5, 10, 20, …
std::size_t LabelStride(double row_height) {
  for (std::size_t power = 1;; power *= 10) {
    for (const std::size_t factor : {1, 2, 5}) {
      if (static_cast<double>(factor * power) * row_height >= kLabelSpacing) return factor * power;
    }
  }
}

void DrawRow(std::string* out, const StripChart& chart, const StripRow& row, const PlotArea& line,
             const Axis& axis) {
  for (const StripSegment& segment : Joined(row.segments)) {
    const double x = line.X(axis, segment.begin);
    fmt::format_to(std::back_inserter(*out),
                   "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">"
                   "<title>{}: {}, {} – {}</title></rect>\n",
                   FillClass(segment.category), Px(x), Px(line.top),
                   Px(line.X(axis, segment.end) - x), Px(line.height), EscapeXml(row.label),
                   EscapeXml(CategoryName(chart, segment.category)), FormatNumber(segment.begin),
                   FormatNumber(segment.end));
  }
}

std::vector<LegendEntry> Legend(const StripChart& chart, bool marks) {
  std::set<int> categories;
  for (const StripRow& row : chart.rows) {
    for (const StripSegment& segment : row.segments) {
      if (Visible(segment)) categories.insert(std::max(segment.category, -1));
    }
  }
  std::vector<LegendEntry> legend;
  for (const int category : categories) {
    if (legend.size() == kLegendCategories) {
      legend.push_back({fmt::format("and {} more", categories.size() - kLegendCategories), ""});
      break;
    }
    legend.push_back({CategoryName(chart, category),
                      fmt::format("<rect class=\"{}\" y=\"-6\" width=\"26\" height=\"12\"/>",
                                  FillClass(category))});
  }
  if (marks) {
    legend.push_back({chart.mark_name, "<path class=\"cb-mark\" d=\"M13 -6v12\"/>"});
  }
  return legend;
}

}  // namespace

std::string RenderSvg(const StripChart& chart) {
  std::string body;
  PlotArea area;
  area.top = DrawTitle(&body, chart.title, "");
  const auto count = static_cast<double>(std::max<std::size_t>(1, chart.rows.size()));
  const double row_height = std::clamp(kTallestPlot / count, kThinnestRow, kTallestRow);
  area.height = row_height * count;
  const std::size_t stride = LabelStride(row_height);
  double label_width = 0;
  for (std::size_t r = 0; r < chart.rows.size(); r += stride) {
    label_width = std::max(label_width, TextWidth(chart.rows[r].label, kFontSize));
  }
  area.left = kSvgMargin + std::min(label_width, kWidestStripLabel) + 7;
  area.width = kSvgWidth - kPlotMargin - area.left;

  const Axis axis = TimeAxis(chart);
  std::string marks;
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const StripRow& row = chart.rows[r];
    const double top = area.top + row_height * static_cast<double>(r);
    const double gap = std::min(3.0, 0.2 * row_height);
    DrawRow(&body, chart, row, {area.left, top + gap / 2, area.width, row_height - gap}, axis);
    for (const double mark : row.marks) {
      if (!Drawable(mark, Scale::kLinear)) continue;
      marks += fmt::format("M{} {}v{}", Px(area.X(axis, mark)), Px(top), Px(row_height));
    }
    if (r % stride == 0) {
      DrawText(&body, area.left - 7, top + row_height / 2 + 5, "text-anchor=\"end\"",
               FitText(row.label, kFontSize, kWidestStripLabel));
    }
  }
  if (!marks.empty()) {
    body += fmt::format(
        "<path class=\"cb-halo\" d=\"{0}\"/>\n<path class=\"cb-mark\" d=\"{0}\"/>\n", marks);
  }
  if (chart.rows.empty()) {
    DrawText(&body, area.left + area.width / 2, area.top + area.height / 2,
             "class=\"cb-soft\" text-anchor=\"middle\"", "no data");
  }
  const double axis_bottom = DrawXAxis(&body, area, axis, chart.x_label);
  const double bottom = DrawLegend(&body, axis_bottom + 4, Legend(chart, !marks.empty()));
  return FinishSvg(bottom + kSvgMargin, chart.title, body);
}

}  // namespace codband::report
