#pragma once

#include <string>
#include <vector>

namespace codband::report {

struct StripSegment {
  double begin = 0;
  double end = 0;
  int category = 0;  // such as a model's id; negative: none, drawn grey
};

struct StripRow {
  std::string label = {};
  std::vector<StripSegment> segments = {};
  std::vector<double> marks = {};  // such as the times of true changes
};

struct StripChart {
  std::string title = {};
  std::string x_label = {};
  std::vector<StripRow> rows = {};               // drawn from the top down
  std::string category_word = "model";           // for categories without a name: "model 3"
  std::vector<std::string> category_names = {};  // by category; may be shorter
  std::string mark_name = "change";              // the marks' entry in the legend
};

// A timeline per row, coloured by category: which user was on which model when. A self-contained
// SVG document like that of RenderSvg (line_chart.h). A category has the same colour in every
// chart; the fourteen colours repeat. Adjacent segments of one category are merged. Rows are
// labelled as densely as the text allows; the legend names up to 20 categories in ascending order.
// Segments that are empty or not finite are omitted. Pure; thread-safe.
std::string RenderSvg(const StripChart& chart);

}  // namespace codband::report
