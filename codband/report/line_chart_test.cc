#include "codband/report/line_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

LineChart Regret(int series_count, int points, Scale scale) {
  LineChart chart{.title = "Regret <&>", .x_label = "round", .y_label = "regret"};
  chart.x_scale = chart.y_scale = scale;
  for (int s = 0; s < series_count; ++s) {
    LineSeries series{.name = "policy & " + std::to_string(s)};
    for (int i = 1; i <= points; ++i) {
      const double y = (s + 1) * std::sqrt(i) * (1 + 0.3 * std::sin(i));
      series.x.push_back(i);
      series.y.push_back(y);
      series.low.push_back(y - 2);
      series.high.push_back(y + 2);
    }
    chart.series.push_back(series);
  }
  return chart;
}

void ExpectSound(const std::string& svg) {
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find(" id=\""), std::string::npos) << "ids collide between charts of one page";
}

struct Box {
  double left, right, top, bottom;
};

// The plot area after the drawn axes.
Box PlotBox(const std::string& svg) {
  const std::string axis = Between(svg, "class=\"cb-axis\" d=\"", "\"").at(0);
  const std::string grid = Between(svg, "class=\"cb-grid\" d=\"", "\"").at(0);
  Box box{};
  box.left = PathPoints(axis).at(0).first;
  box.bottom = PathPoints(axis).at(0).second;
  box.right = box.left + std::strtod(axis.c_str() + axis.find('h') + 1, nullptr);
  box.top = box.bottom - 290;
  for (const auto& [x, y] : PathPoints(grid)) {
    EXPECT_GE(y, box.top);
    EXPECT_LE(y, box.bottom);
  }
  return box;
}

TEST(LineChartTest, DrawsAllSeriesInsideThePlotArea) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    const std::string svg = RenderSvg(Regret(12, 300, scale));
    ExpectSound(svg);
    const Box box = PlotBox(svg);
    std::size_t points = 0;
    for (const char* prefix : {"<path class=\"cb-line ", "<path class=\"cb-band "}) {
      for (const std::string& element : Between(svg, prefix, "/>")) {
        if (element.find("M0 0h26") != std::string::npos) continue;  // legend
        for (const auto& [x, y] : PathPoints(Between(element, "d=\"", "\"").at(0))) {
          ++points;
          EXPECT_GE(x, box.left);
          EXPECT_LE(x, box.right);
          EXPECT_GE(y, box.top - 0.05);
          EXPECT_LE(y, box.bottom + 0.05);
        }
      }
    }
    EXPECT_GT(points, 12u * 3 * 100);
  }
}

TEST(LineChartTest, TwelveSeriesLookDifferentAndAreAllInTheLegend) {
  const std::string svg = RenderSvg(Regret(12, 10, Scale::kLinear));
  const Box box = PlotBox(svg);
  for (int s = 0; s < 12; ++s) {
    const std::string entry = ">policy &amp; " + std::to_string(s) + "</text>";
    ASSERT_EQ(Count(svg, entry), 1u);
    const std::string head = svg.substr(0, svg.find(entry));
    const double y = std::strtod(head.c_str() + head.rfind("y=\"") + 3, nullptr);
    EXPECT_GT(y, box.bottom + 40) << "the legend covers the plot";
  }
  std::set<std::string> looks;
  for (const std::string& look : Between(svg, "<path class=\"cb-line ", "\"")) looks.insert(look);
  EXPECT_EQ(looks.size(), 12u);
}

TEST(LineChartTest, LongLegendEntriesStayInsideThePicture) {
  LineChart chart = Regret(3, 3, Scale::kLinear);
  chart.series[1].name = std::string(300, 'm');
  const std::string svg = RenderSvg(chart);
  ExpectSound(svg);
  EXPECT_EQ(Count(svg, std::string(60, 'm') + "</text>"), 0u);
  EXPECT_EQ(Count(svg, "m…</text>"), 1u);
}

TEST(LineChartTest, TooltipsAreDownsampledAndShowValues) {
  LineChart chart = Regret(2, 20000, Scale::kLinear);
  const std::string svg = RenderSvg(chart);
  const std::vector<std::string> groups = Between(svg, "<g class=\"cb-hit\">", "</g>");
  ASSERT_EQ(groups.size(), 2u);
  for (const std::string& group : groups) {
    EXPECT_LE(Count(group, "<title>"), 60u);
    EXPECT_GE(Count(group, "<title>"), 20u);
  }
  EXPECT_EQ(Count(svg, "<title>policy &amp; 0\nround 1: "), 1u);
  EXPECT_LT(svg.size(), 250000u) << "long series are thinned";
}

TEST(LineChartTest, DownsamplingKeepsThePeak) {
  LineChart chart{.title = "peak"};
  chart.series.push_back({.name = "a"});
  for (int i = 0; i < 50000; ++i) {
    chart.series[0].x.push_back(i);
    chart.series[0].y.push_back(i == 31234 ? 100 : 0);
  }
  const std::string svg = RenderSvg(chart);
  const Box box = PlotBox(svg);
  double highest = box.bottom;
  const std::string path = Between(svg, "<path class=\"cb-line cb-c0\" d=\"", "\"").at(0);
  for (const auto& [x, y] : PathPoints(path)) highest = std::min(highest, y);
  EXPECT_NEAR(highest, box.top, 0.1);
}

TEST(LineChartTest, ValuesThatCannotBeDrawnLeaveGaps) {
  LineChart chart{.title = "gaps", .y_scale = Scale::kLog};
  chart.series.push_back(
      {.name = "a", .x = {1, 2, 3, 4, 5, 6, 7, 8}, .y = {1, 2, 0, 3, 4, kNan, 5, kInf}});
  const std::string svg = RenderSvg(chart);
  ExpectSound(svg);
  const std::string path = Between(svg, "<path class=\"cb-line cb-c0\" d=\"", "\"").at(0);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 3);
  EXPECT_EQ(PathPoints(path).size(), 5u);
  // The point between two gaps has no line; it is drawn as a marker.
  EXPECT_EQ(Count(svg, "<path class=\"cb-f0\""), 1u);
}

TEST(LineChartTest, BandBelowZeroOnALogAxisIsClippedAtTheEdge) {
  LineChart chart{.title = "band", .y_scale = Scale::kLog};
  chart.series.push_back(
      {.name = "a", .x = {1, 2}, .y = {10, 20}, .low = {-5, 15}, .high = {kNan, kInf}});
  const std::string svg = RenderSvg(chart);
  ExpectSound(svg);
  const Box box = PlotBox(svg);
  const auto band = PathPoints(Between(svg, "<path class=\"cb-band cb-f0\" d=\"", "\"").at(0));
  ASSERT_EQ(band.size(), 4u);
  EXPECT_NEAR(band[1].second, box.top, 0.1);     // infinite high
  EXPECT_NEAR(band[3].second, box.bottom, 0.1);  // negative low
}

TEST(LineChartTest, DegenerateInputsStaySound) {
  const std::vector<std::pair<std::vector<double>, std::vector<double>>> inputs = {
      {{}, {}},
      {{3}, {4}},
      {{1, 2, 3}, {0, 0, 0}},
      {{1, 2}, {-1, -1}},
      {{0, 0}, {0, 1}},
      {{kNan}, {1}},
      {{1, 2}, {kInf, -kInf}},
      {{1, 2}, {1e308, -1e308}},
      {{1, 2}, {1e-9, 1e9}},
      {{-5, 5}, {1e15, 1e15 + 1}}};
  for (const Scale x_scale : {Scale::kLinear, Scale::kLog}) {
    for (const Scale y_scale : {Scale::kLinear, Scale::kLog}) {
      for (const auto& [x, y] : inputs) {
        for (const SeriesDraw draw : {SeriesDraw::kLine, SeriesDraw::kMarkers}) {
          LineChart chart{.title = "t", .x_scale = x_scale, .y_scale = y_scale};
          chart.series.push_back({.name = "s", .x = x, .y = y, .low = y, .high = y, .draw = draw});
          ExpectSound(RenderSvg(chart));
        }
      }
    }
  }
}

TEST(LineChartTest, WithoutDataSaysSo) {
  const std::string svg = RenderSvg(LineChart{});
  ExpectSound(svg);
  EXPECT_EQ(Count(svg, ">no data</text>"), 1u);
  EXPECT_EQ(Count(RenderSvg(Regret(1, 2, Scale::kLinear)), "no data"), 0u);
}

TEST(LineChartTest, FitSharesTheColourOfItsDataAndNeutralIsGrey) {
  LineChart chart{.title = "fit"};
  chart.series.push_back({.name = "data", .x = {1, 2}, .y = {1, 2}, .draw = SeriesDraw::kMarkers});
  chart.series.push_back({.name = "", .x = {1, 2}, .y = {1, 2}, .dashed = true, .colour = 0});
  chart.series.push_back(
      {.name = "yardstick", .x = {1, 2}, .y = {2, 1}, .dashed = true, .colour = kNeutralColour});
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(Count(svg, "<path class=\"cb-line cb-c0 cb-dashed\""), 1u);  // not in the legend
  EXPECT_EQ(Count(svg, "<path class=\"cb-line cb-cn cb-dashed\""), 2u);
  EXPECT_EQ(Count(svg, "<path class=\"cb-f0\""), 2u);
}

TEST(LineChartTest, AStrongSeriesIsThickInFrontAndNamedAtItsEnd) {
  LineChart chart = Regret(3, 20, Scale::kLinear);
  chart.series[0].strong = true;
  const std::string svg = RenderSvg(chart);
  ExpectSound(svg);
  EXPECT_EQ(Count(svg, "cb-line cb-c0 cb-strong\" d=\"M0 0h26"), 1U);  // in the legend
  EXPECT_EQ(Count(svg, "cb-strong\""), 2U);
  EXPECT_GT(svg.find("cb-line cb-c0 cb-strong"), svg.find("cb-line cb-c2"));
  EXPECT_EQ(Count(svg, "class=\"cb-end\" text-anchor=\"end\">policy &amp; 0</text>"), 1U);
}

TEST(LineChartTest, SameChartGivesTheSameBytes) {
  EXPECT_EQ(RenderSvg(Regret(5, 100, Scale::kLog)), RenderSvg(Regret(5, 100, Scale::kLog)));
}

TEST(LineChartTest, AllChartsShareOneStyleSheet) {
  const std::string style = Between(RenderSvg(LineChart{}), "<style>", "</style>").at(0);
  EXPECT_EQ(Between(RenderSvg(Regret(9, 9, Scale::kLog)), "<style>", "</style>").at(0), style);
  EXPECT_NE(style.find("prefers-color-scheme:dark"), std::string::npos);
  for (const std::string& selector : Between(style, "}\n", "{")) {
    EXPECT_TRUE(selector.starts_with(".cb-chart") || selector.starts_with("@media") ||
                selector.starts_with("}") || selector.empty())
        << selector;
  }
}

TEST(LineChartTest, RejectsVectorsOfDifferentLength) {
  LineChart chart;
  chart.series.push_back({.name = "s", .x = {1, 2}, .y = {1}});
  EXPECT_THROW(RenderSvg(chart), std::invalid_argument);
  chart.series[0].y = {1, 2};
  chart.series[0].low = {1, 2};
  EXPECT_THROW(RenderSvg(chart), std::invalid_argument);
}

}  // namespace
}  // namespace codband::report
