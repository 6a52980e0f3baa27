#include "codband/report/interval_chart.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

IntervalChart Example() {
  IntervalChart chart{.title = "Policies & values",
                      .x_label = "reward",
                      .series = {"ips", "dr <2>"},
                      .rows = {},
                      .inner_name = "bootstrap",
                      .outer_name = "guaranteed"};
  chart.rows.push_back({.label = "linucb",
                        .marks = {{0, 0.2, 0.1, 0.3, 0.05, 0.4}, {1, 0.25, 0.2, 0.3, kNan, kNan}}});
  chart.rows.push_back({.label = "codband", .marks = {{0, 0.3, 0.25, 0.35, 0, 10}}});
  return chart;
}

double X(const std::string& svg, std::size_t mark) {
  return std::strtod(Between(svg, " cx=\"", "\"").at(mark).c_str(), nullptr);
}

TEST(IntervalChartTest, DrawsEveryMarkWithItsIntervals) {
  const std::string svg = RenderSvg(Example());
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "<title>"), 3u);
  EXPECT_EQ(Count(svg, "<title>linucb ips: 0.2, 0.1 – 0.3 (0.05 – 0.4)</title>"), 1u);
  EXPECT_EQ(Count(svg, "<title>linucb dr &lt;2&gt;: 0.25, 0.2 – 0.3</title>"), 1u);
  EXPECT_EQ(Count(svg, "stroke-width:4\""), 3u + 1u);  // and one in the legend
  EXPECT_EQ(Count(svg, "stroke-width:1\""), 2u + 1u);
  EXPECT_LT(X(svg, 0), X(svg, 1));
  EXPECT_LT(X(svg, 1), X(svg, 2));
  for (const char* name : {">ips<", ">dr &lt;2&gt;<", ">bootstrap<", ">guaranteed<", ">linucb<"}) {
    EXPECT_EQ(Count(svg, name), 1u) << name;
  }
}

TEST(IntervalChartTest, LongOuterIntervalsAreClipped) {
  const std::string svg = RenderSvg(Example());
  // 0.1 of reward is more than a tenth of the plot, although one interval reaches to 10.
  EXPECT_GT(X(svg, 2) - X(svg, 0), 50);
  EXPECT_EQ(Count(svg, "l4 3l-4 3"), 1u);  // its arrowhead
}

TEST(IntervalChartTest, AUselessRowDoesNotPressTheOthersTogether) {
  IntervalChart chart = Example();
  chart.rows.push_back({.label = "uniform", .marks = {{0, 0.22, 0.2, 0.24, kNan, kNan}}});
  const std::string before = RenderSvg(chart);
  chart.rows.push_back({.label = "useless", .marks = {{0, 50, -300, 400, kNan, kNan}}});
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(XmlError(svg), "");
  // Without its interval and its value: a triangle at the edge says where it is.
  EXPECT_GT(X(svg, 2) - X(svg, 0), 0.8 * (X(before, 2) - X(before, 0)));
  EXPECT_EQ(Count(svg, "l-8 -5v10z"), 1u);
  EXPECT_EQ(Count(svg, "<title>useless ips: 50, -300 – 400</title>"), 1u);
}

TEST(IntervalChartTest, TheReferenceIsOnTheAxisAndNearEnoughToDrawEverything) {
  IntervalChart chart{.title = "Differences", .x_label = "%", .series = {"codband"}};
  for (const double value : {-15.0, -12.7, -7.8, -34.0}) {
    chart.rows.push_back({.label = "cell", .marks = {{0, value, kNan, kNan, kNan, kNan}}});
  }
  EXPECT_EQ(Count(RenderSvg(chart), "v10z"), 1u);  // far from the others
  chart.reference = 0;
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(Count(svg, "v10z"), 0u);
  EXPECT_EQ(Count(svg, ">0<"), 1u);  // its tick
  EXPECT_GT(std::strtod(Between(svg, "<path class=\"cb-axis\" d=\"M", " ").at(0).c_str(), nullptr),
            X(svg, 2));
  // Nothing has an interval: the legend names none.
  EXPECT_EQ(Count(svg, "interval"), 0u);
}

TEST(IntervalChartTest, DegenerateInputsStaySound) {
  EXPECT_EQ(Count(RenderSvg(IntervalChart{}), "no data"), 1u);
  IntervalChart chart = Example();
  chart.rows = {{.label = std::string(200, 'w'), .marks = {{0, kNan, kNan, kNan, kNan, kNan}}},
                {.label = "none"}};
  std::string svg = RenderSvg(chart);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "no data"), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  chart.rows = {{.label = "one", .marks = {{0, 0, 0, 0, 0, 0}}}};
  svg = RenderSvg(chart);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace codband::report
