#include "codband/report/html_page.h"

#include <gtest/gtest.h>

#include "codband/report/line_chart.h"
#include "codband/report/strip_chart.h"
#include "codband/report/test_support.h"

namespace codband::report {
namespace {

TEST(HtmlPageTest, EscapesEverythingExceptTheFigure) {
  const std::string evil = "<script>alert('1 & 2')</script>";
  HtmlPage page(evil);
  page.AddHeading(evil);
  page.AddParagraph(evil);
  ReportTable table({{evil}});
  table.AddRow({evil});
  page.AddTable(table, evil);
  page.AddFigure("<svg class=\"x\"></svg>", evil);
  page.AddCommand(evil);
  page.AddKeyValues({{evil, evil}});
  const std::string html = page.ToHtml();
  EXPECT_EQ(Count(html, "<script"), 0u);
  EXPECT_EQ(Count(html, "&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;"), 11u);
  EXPECT_EQ(Count(html, "<svg class=\"x\"></svg>"), 1u);
}

TEST(HtmlPageTest, KeepsTheOrderOfItsParts) {
  HtmlPage page("t");
  page.AddHeading("first");
  page.AddCommand("codband paper");
  page.AddParagraph("last");
  const std::string html = page.ToHtml();
  EXPECT_LT(html.find("<h1>t</h1>"), html.find("<h2>first</h2>"));
  EXPECT_LT(html.find("<h2>first</h2>"), html.find("codband paper</code>"));
  EXPECT_LT(html.find("codband paper</code>"), html.find("<p>last</p>"));
}

TEST(HtmlPageTest, IsSelfContained) {
  HtmlPage page("t");
  page.AddFigure(RenderSvg(LineChart{.title = "a"}));
  page.AddFigure(RenderSvg(StripChart{.title = "b"}));
  const std::string html = page.ToHtml();
  EXPECT_EQ(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "href="), 0u);
  EXPECT_EQ(Count(html, "url("), 0u);
  EXPECT_EQ(Count(html, "@import"), 0u);
  EXPECT_EQ(Count(html, "http"), Count(html, "xmlns=\"http"));
}

TEST(HtmlPageTest, BodyIsWellFormedAndFitsNarrowScreens) {
  HtmlPage page("t");
  ReportTable table({{"a"}});
  page.AddTable(table);
  page.AddFigure(RenderSvg(LineChart{.title = "a"}), "caption");
  page.AddKeyValues({{"k", "v"}});
  page.AddKeyValues({});
  const std::string html = page.ToHtml();
  EXPECT_EQ(XmlError(html.substr(html.find("<main>"), html.find("</body>") - html.find("<main>"))),
            "");
  EXPECT_EQ(Count(html, "<dl>"), 1u);
  EXPECT_EQ(Count(html, "<figcaption>"), 1u);
  EXPECT_EQ(Count(html, "<div class=\"scroll\" tabindex=\"0\">\n<table>"), 1u);
  EXPECT_EQ(Count(html, "name=\"viewport\""), 1u);
  EXPECT_GE(Count(html, "prefers-color-scheme:dark"), 2u);
}

}  // namespace
}  // namespace codband::report
