#include "codband/report/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "codband/report/test_support.h"

namespace codband::report {
namespace {

ReportTable Sample() {
  ReportTable table({{"policy"}, {"± σ", Align::kRight}});
  table.AddRow({"linucb", "1.5"});
  table.AddRow({"a–b", "12.25"});
  return table;
}

TEST(TableTest, TextAlignsByCharactersAndTrimsLineEnds) {
  EXPECT_EQ(Sample().ToText(),
            "policy    ± σ\n"
            "------  -----\n"
            "linucb    1.5\n"
            "a–b     12.25\n");
  ReportTable left({{"a"}, {"b"}});
  left.AddRow({"x", "long"});
  left.AddRow({"two\nlines", "y"});
  EXPECT_EQ(left.ToText(),
            "a          b\n"
            "---------  ----\n"
            "x          long\n"
            "two lines  y\n");
}

TEST(TableTest, MarkdownAlignsEmphasisesAndEscapes) {
  ReportTable table = Sample();
  table.AddRow({"a|b*c_d <i>", ""});
  table.Emphasise(0, 1);
  table.Emphasise(2, 1);
  EXPECT_EQ(table.ToMarkdown(),
            "| policy            |     ± σ |\n"
            "| ----------------- | ------: |\n"
            "| linucb            | **1.5** |\n"
            "| a–b               |   12.25 |\n"
            "| a\\|b\\*c\\_d &lt;i> |         |\n");
}

TEST(TableTest, CsvQuotesCommasAndQuotes) {
  ReportTable table({{"a,b"}, {"c"}});
  table.AddRow({"say \"hi\"", "plain σ"});
  table.AddRow({"two\nlines", ""});
  table.Emphasise(0, 1);
  EXPECT_EQ(table.ToCsv(), "\"a,b\",c\n\"say \"\"hi\"\"\",plain σ\n\"two\nlines\",\n");
}

TEST(TableTest, HtmlEscapesAlignsAndEmphasises) {
  ReportTable table({{"a<b"}, {"n", Align::kRight}});
  table.AddRow({"<script>", "1"});
  table.Emphasise(0, 1);
  const std::string html = table.ToHtml();
  EXPECT_EQ(XmlError(html), "");
  EXPECT_NE(html.find("<th scope=\"col\">a&lt;b</th>"), std::string::npos);
  EXPECT_NE(html.find("<td>&lt;script&gt;</td>"), std::string::npos);
  EXPECT_NE(html.find("<td style=\"text-align:right\"><strong>1</strong></td>"), std::string::npos);
}

TEST(TableTest, RejectsWrongShapes) {
  EXPECT_THROW(ReportTable({}), std::invalid_argument);
  ReportTable table = Sample();
  EXPECT_THROW(table.AddRow({"one"}), std::invalid_argument);
  EXPECT_THROW(table.Emphasise(2, 0), std::invalid_argument);
  EXPECT_THROW(table.Emphasise(0, 2), std::invalid_argument);
  EXPECT_EQ(table.row_count(), 2u);
}

TEST(TableTest, TableWithoutRowsHasItsHeader) {
  const ReportTable table({{"only"}});
  EXPECT_EQ(table.ToText(), "only\n----\n");
  EXPECT_EQ(table.ToCsv(), "only\n");
  EXPECT_EQ(XmlError(table.ToHtml()), "");
}

}  // namespace
}  // namespace codband::report
