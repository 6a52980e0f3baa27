#pragma once

#include <string>
#include <vector>

#include "codband/report/axis.h"

namespace codband::report {

enum class SeriesDraw { kLine, kMarkers };

inline constexpr int kAutoColour = -1;     // the position of the series in the chart
inline constexpr int kNeutralColour = -2;  // grey, for reference policies

struct LineSeries {
  std::string name = {};  // empty: not in the legend
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};  // a band from low to high, such as mean ± sd; both empty: no band
  std::vector<double> high = {};
  SeriesDraw draw = SeriesDraw::kLine;
  bool dashed = false;  // for fitted lines and references
  bool strong = false;  // the subject of the chart: thick, in front, its name at the line's end
  // Series with the same number look alike: give a fit the number of its data. Seven colours, then
  // the same colours with other dash patterns; five marker shapes.
  int colour = kAutoColour;
};

struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};  // above the plot, not rotated
  Scale x_scale = Scale::kLinear;
  Scale y_scale = Scale::kLinear;
  std::vector<LineSeries> series = {};
};

// The chart as a self-contained SVG document, which may also be embedded in an HTML page next to
// others; see svg_parts.h. Deterministic: the same chart gives the same bytes. The legend is below
// the plot; tooltips show values (up to 60 points per series).
//
// A point that cannot be plotted (NaN, infinite, not positive on a log axis) leaves a gap; the end
// of a band that cannot be plotted is clipped at the edge of the plot. Long series are downsampled
// to the resolution of the picture, keeping extremes. A chart without points says "no data".
//
// Throws std::invalid_argument if the vectors of a series differ in length. Pure; thread-safe.
std::string RenderSvg(const LineChart& chart);

}  // namespace codband::report
