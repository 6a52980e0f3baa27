#include "codband/report/strip_chart.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

StripChart Users(int users, int segments) {
  StripChart chart{.title = "Users & models", .x_label = "round", .mark_name = "true change"};
  for (int u = 0; u < users; ++u) {
    StripRow row{.label = "user " + std::to_string(u)};
    for (int s = 0; s < segments; ++s) {
      row.segments.push_back({100.0 * s, 100.0 * (s + 1), (u + s) % 10});
      if (s > 0) row.marks.push_back(100.0 * s - 10);
    }
    chart.rows.push_back(row);
  }
  return chart;
}

double Attribute(const std::string& element, const std::string& name) {
  return std::strtod(Between(element, " " + name + "=\"", "\"").at(0).c_str(), nullptr);
}

TEST(StripChartTest, HoldsHundredUsersOfTwentySegments) {
  const std::string svg = RenderSvg(Users(100, 20));
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find(" id=\""), std::string::npos);
  EXPECT_EQ(Count(svg, "<title>"), 2000u);
  const std::string marks = Between(svg, "<path class=\"cb-mark\" d=\"", "\"").at(0);
  EXPECT_EQ(PathPoints(marks).size(), 1900u);
  const auto origin = PathPoints(Between(svg, "class=\"cb-axis\" d=\"", "\"").at(0)).at(0);
  for (const std::string& rect : Between(svg, "<rect class=\"cb-f", "</rect>")) {
    if (rect.find("<title>") == std::string::npos) continue;  // legend
    EXPECT_GE(Attribute(rect, "x"), origin.first - 0.1);
    EXPECT_LE(Attribute(rect, "x") + Attribute(rect, "width"), 560);
    EXPECT_LE(Attribute(rect, "y") + Attribute(rect, "height"), origin.second);
    EXPECT_GT(Attribute(rect, "height"), 2);
  }
}

TEST(StripChartTest, LabelsRowsSparselyEnoughToRead) {
  const std::string svg = RenderSvg(Users(100, 2));
  double previous = -100;
  int labels = 0;
  for (const std::string& text : Between(svg, "<text", "</text>")) {
    if (text.find(">user ") == std::string::npos) continue;
    ++labels;
    EXPECT_GE(Attribute(text, "y") - previous, 16);
    previous = Attribute(text, "y");
  }
  EXPECT_EQ(labels, 20);
  EXPECT_EQ(Count(RenderSvg(Users(8, 2)), "text-anchor=\"end\">user "), 8u);
}

TEST(StripChartTest, ColoursOfCategoriesRepeatAfterFourteen) {
  StripChart chart;
  chart.rows.push_back({.label = "a", .segments = {{0, 1, 16}, {1, 2, 2}, {2, 3, -1}}});
  chart.category_names = {"zero", "one", "two <2>"};
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Count(svg, "<rect class=\"cb-f2\""), 4u);  // two segments, two legend entries
  EXPECT_EQ(Count(svg, "<rect class=\"cb-fn cb-none\""), 2u);
  EXPECT_EQ(Count(svg, ">two &lt;2&gt;</text>"), 1u);
  EXPECT_EQ(Count(svg, ">model 16</text>"), 1u);
  EXPECT_EQ(Count(svg, ">one</text>"), 0u);
}

TEST(StripChartTest, MergesAdjacentSegmentsOfACategory) {
  StripChart chart;
  chart.rows.push_back({.label = "a", .segments = {{0, 1, 3}, {1, 2, 3}, {2.5, 3, 3}, {3, 4, 1}}});
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(Count(svg, "<title>"), 3u);
  EXPECT_EQ(Count(svg, "<title>a: model 3, 0 – 2</title>"), 1u);
}

TEST(StripChartTest, LegendSaysHowManyCategoriesItOmits) {
  StripChart chart;
  chart.rows.push_back({.label = "a"});
  for (int c = 0; c < 33; ++c) chart.rows[0].segments.push_back({1.0 * c, c + 1.0, c});
  EXPECT_EQ(Count(RenderSvg(chart), ">and 13 more</text>"), 1u);
}

TEST(StripChartTest, DegenerateInputsStaySound) {
  StripChart chart;
  EXPECT_EQ(XmlError(RenderSvg(chart)), "");
  EXPECT_EQ(Count(RenderSvg(chart), "no data"), 1u);
  chart.rows.push_back({.label = std::string(200, 'w') + "\x01"});
  chart.rows.push_back({.label = "b",
                        .segments = {{kNan, 1, 0}, {0, kInf, 1}, {5, 5, 2}, {6, 5, 3}},
                        .marks = {kNan, kInf}});
  const std::string svg = RenderSvg(chart);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(Count(svg, "<title>"), 0u);
}

}  // namespace
}  // namespace codband::report
