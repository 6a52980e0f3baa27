#pragma once

#include <string>
#include <vector>

#include "codband/report/axis.h"

namespace codband::report {

enum class SeriesDraw { kLine, kMarkers, kLineAndMarkers };

inline constexpr int kAutoColour = -1;     // the position of the series in the chart
inline constexpr int kNeutralColour = -2;  // grey, for yardsticks

struct LineSeries {
  std::string name = {};  // empty: not in the legend
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};  // a band from low to high, such as mean ± sd; both empty: no band
  std::vector<double> high = {};
  SeriesDraw draw = SeriesDraw::kLine;
  bool dashed = false;  // for fitted lines and references
  // Series of the same number look alike: give the fit the number of its data. Seven colours, then
  // the same colours with other dashes; five shapes of marker.
  int colour = kAutoColour;
};

struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};  // stands above the plot, not sideways
  Scale x_scale = Scale::kLinear;
  Scale y_scale = Scale::kLinear;
  std::vector<LineSeries> series = {};
};

// The chart as a self-contained SVG document, also fit for being put into an HTML page next to
// others; see svg_parts.h. The same chart gives the same bytes. The legend stands below the plot;
// values show when the pointer rests on a line (up to 60 places each).
//
// A point that cannot be drawn (NaN, infinite, not positive on a log axis) leaves a gap; an end of
// a band that cannot be drawn is cut at the edge of the plot. Long series are thinned to what the
// picture can show, extremes kept. A chart without any point says "no data".
//
// Throws std::invalid_argument if the vectors of a series differ in length. Pure; thread-safe.
std::string RenderSvg(const LineChart& chart);

}  // namespace codband::report
