#pragma once

#include <optional>
#include <string>
#include <vector>

namespace codband::report {

// An estimate with up to two intervals.
struct IntervalMark {
  int series = 0;  // index into IntervalChart::series
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
  // A value to compare with, as 0 is for differences: a vertical line, always within the axis.
  std::optional<double> reference = {};
};

// A dot-and-whisker chart, one line per mark, grouped by row. The axis covers all values and thick
// lines; a thin line that is much longer is clipped at the edge with an arrowhead. Marks whose
// value is not finite are omitted, and so are entries of the legend for lines that no mark has. A
// self-contained SVG document like that of RenderSvg (line_chart.h). Pure; thread-safe.
std::string RenderSvg(const IntervalChart& chart);

}  // namespace codband::report
