#include "codband/base/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codband/base/file.h"

namespace codband {
namespace {

using Strings = std::vector<std::string>;

struct Read {
  Strings fields;
  std::string problem;
};

// The text as one record.
Read ReadRecord(std::string_view text, CsvQuotes quotes) {
  CsvRecord record(quotes);
  TextLines lines(text);
  if (!lines.Next()) return {{""}, ""};
  record.Begin(lines.line());
  while (record.open()) {
    const std::string_view line_break = lines.line_break();
    if (!lines.Next()) break;
    record.Continue(line_break, lines.line());
  }
  if (!record.problem().empty()) return {{}, std::string(record.problem())};
  return {{record.fields().begin(), record.fields().end()}, ""};
}

TEST(CsvRecordTest, FieldsMayHoldCommasQuotesAndLineBreaks) {
  for (const CsvQuotes quotes : {CsvQuotes::kStrict, CsvQuotes::kLenient}) {
    EXPECT_EQ(ReadRecord("1,\"American President, The\"", quotes).fields,
              (Strings{"1", "American President, The"}));
    EXPECT_EQ(ReadRecord("2,\"a \"\"b\"\"\"", quotes).fields, (Strings{"2", "a \"b\""}));
    EXPECT_EQ(ReadRecord("\"3\",\"x\r\n\ny\"\n", quotes).fields, (Strings{"3", "x\r\n\ny"}));
    EXPECT_EQ(ReadRecord("4,\"\"", quotes).fields, (Strings{"4", ""}));
    EXPECT_EQ(ReadRecord(",\"\",", quotes).fields, (Strings{"", "", ""}));
    EXPECT_EQ(ReadRecord("\"\"\"\"", quotes).fields, Strings{"\""});
    EXPECT_EQ(ReadRecord("", quotes).fields, Strings{""});
  }
}

TEST(CsvRecordTest, StrayQuotesAreAProblemOrPartOfTheField) {
  EXPECT_EQ(ReadRecord("1,\"a\"b", CsvQuotes::kStrict).problem, "text after a closing quote");
  EXPECT_EQ(ReadRecord("2,a\"b", CsvQuotes::kStrict).problem,
            "a quote within a field that does not begin with one");
  EXPECT_EQ(ReadRecord("\"a\nb\"c", CsvQuotes::kStrict).problem, "text after a closing quote");
  EXPECT_EQ(ReadRecord("1,\"a\"b", CsvQuotes::kLenient).fields, (Strings{"1", "ab"}));
  EXPECT_EQ(ReadRecord("2,a\"b", CsvQuotes::kLenient).fields, (Strings{"2", "a\"b"}));
  EXPECT_EQ(ReadRecord("\"a\"b\"c\"", CsvQuotes::kLenient).fields, Strings{"ab\"c\""});
}

TEST(CsvRecordTest, QuoteThatIsNeverClosedIsAProblem) {
  for (const CsvQuotes quotes : {CsvQuotes::kStrict, CsvQuotes::kLenient}) {
    EXPECT_EQ(ReadRecord("1,\"open\n2,b\n", quotes).problem,
              "a quoted field is never closed, expected '\"'");
  }
}

RC_GTEST_PROP(CsvRecordTest, ReadsBackWhatIsWritten, ()) {
  const auto fields = *rc::gen::nonEmpty(rc::gen::container<Strings>(
      rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', ' ', '\xC3'))));
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : ",") + CsvField(fields[i]);
  for (const CsvQuotes quotes : {CsvQuotes::kStrict, CsvQuotes::kLenient}) {
    RC_ASSERT(ReadRecord(text + "\r\n", quotes).fields == fields);
  }
}

TEST(CsvFieldTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(CsvField("plain σ"), "plain σ");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

class CsvRowsTest : public testing::Test {
 protected:
  ~CsvRowsTest() override { std::filesystem::remove(path_); }

  Result<CsvRows> Open(std::string_view content) const {
    EXPECT_TRUE(WriteFileDurably(path_, content).ok());
    return CsvRows::Open(path_);
  }

  const std::string path_ = testing::TempDir() + "csv_rows_" + std::to_string(getpid());
};

TEST_F(CsvRowsTest, RowsHaveLinesAndProblems) {
  auto rows = Open(
                  "\xEF\xBB\xBF"
                  "id,name\r\n1,\"x\ny\"\r\n\n\"\"\n2\n3,z\r")
                  .value();
  EXPECT_EQ(rows.header(), (Strings{"id", "name"}));
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.field(1), "x\ny");
  EXPECT_EQ(rows.line(), 2U);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.problem(), "1 fields, expected 2 as in the header");
  EXPECT_EQ(rows.line(), 6U);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.problem(), "");
  EXPECT_EQ(rows.field(1), "z");
  EXPECT_FALSE(rows.Next());
}

TEST_F(CsvRowsTest, ColumnsAreFoundByName) {
  const auto rows = Open("id,,na\x1Bme\n").value();
  EXPECT_EQ(rows.Find("id"), 0U);
  EXPECT_FALSE(rows.Find("").has_value());
  EXPECT_EQ(rows.Column("--c", "id").value(), 0U);
  EXPECT_EQ(rows.Column("--c", "x").status().message(),
            "--c = 'x', expected a column of " + path_ + ": id, , na me");
}

TEST_F(CsvRowsTest, FileWithoutHeaderIsRefused) {
  EXPECT_EQ(Open("\n\n").status().message(), path_ + " is empty, expected a header and rows");
  EXPECT_EQ(Open("\n\"id\n").status().message(),
            path_ + ":2: a quoted field is never closed, expected '\"'");
  EXPECT_EQ(CsvRows::Open(path_ + ".none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace codband
