#pragma once

#include <string>
#include <vector>

namespace codband::report {

// An estimate with up to two intervals.
struct IntervalMark {
  int series = 0;  // which of IntervalChart::series
  double value = 0;
  double low = 0, high = 0;              // the thick line; NaN: none
  double outer_low = 0, outer_high = 0;  // the thin line; NaN: none
};

struct IntervalRow {
  std::string label = {};
  std::vector<IntervalMark> marks = {};  // drawn from the top down
};

struct IntervalChart {
  std::string title = {};
  std::string x_label = {};
  std::vector<std::string> series = {};       // names for the legend
  std::vector<IntervalRow> rows = {};         // drawn from the top down
  std::string inner_name = "interval";        // the thick line's entry in the legend
  std::string outer_name = "outer interval";  // the thin line's
};

// Dots with whiskers, one line a mark, grouped by row. The axis holds all values and thick lines; a
// thin line that is much longer ends at the edge in an arrowhead. Marks whose value is not finite
// are left out. A self-contained SVG document, as RenderSvg of line_chart.h makes. Pure;
// thread-safe.
std::string RenderSvg(const IntervalChart& chart);

}  // namespace codband::report
