#include "codband/data/table_reader.h"

#include <string>
#include <vector>

#include "codband/data/test_support.h"

namespace codband::data {
namespace {

using Rows = std::vector<std::vector<std::string>>;

const TableFormat kTabs{.columns = {"id", "name"}};
const TableFormat kCsv{.separator = Separator::kComma, .columns = {"id", "name"}};

class TableReaderTest : public DirectoryTest {
 protected:
  Status Read(std::string_view content, const TableFormat& format, bool strict = false) {
    log_ = InputLog(strict);
    rows_.clear();
    return ReadTable(Write("table", content), format, log_, part_, [&](TableRow& row) {
      row.Number<int>(0);
      if (row.ok()) {
        rows_.emplace_back();
        for (std::size_t i = 0; i < format.columns.size(); ++i) rows_.back().emplace_back(row[i]);
      }
    });
  }

  InputLog log_;
  Rows rows_;
};

TEST_F(TableReaderTest, ReadsTabsWithByteOrderMarkAndCarriageReturns) {
  const Status status = Read("\xEF\xBB\xBFid\tname\r\n1\ta b\r\n\r\n2\t\r\n", kTabs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows_, (Rows{{"1", "a b"}, {"2", ""}}));
  EXPECT_EQ(log_.files().front().rows, 2U);
  EXPECT_EQ(log_.malformed(), 0U);
}

TEST_F(TableReaderTest, CsvFieldsMayHoldCommasQuotesAndLineBreaks) {
  const Status status = Read(
      "id,name\r\n1,\"American President, The\"\r\n2,\"a \"\"b\"\"\"\n\"3\",\"x\r\ny\"\n4,\"\"\n",
      kCsv);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows_,
            (Rows{{"1", "American President, The"}, {"2", "a \"b\""}, {"3", "x\ny"}, {"4", ""}}));
  EXPECT_EQ(log_.malformed(), 0U);
}

TEST_F(TableReaderTest, UnclosedQuoteLosesOneLineOnly) {
  const Status status = Read("id,name\n1,\"open\n2,b\n3,c\n4,d\n", kCsv);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows_, (Rows{{"2", "b"}, {"3", "c"}, {"4", "d"}}));
  ASSERT_EQ(log_.examples().size(), 1U);
  EXPECT_EQ(log_.examples().front(), "table:2: a quoted field is never closed, expected '\"'");
}

TEST_F(TableReaderTest, StrayQuotesAreMalformed) {
  const Status status = Read("id,name\n1,\"a\"b\n2,a\"b\n3,c\n4,d\n5,e\n", kCsv);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows_.size(), 3U);
  EXPECT_EQ(log_.malformed(), 2U);
}

TEST_F(TableReaderTest, TextMayHoldTheDoubleColon) {
  const TableFormat format{.separator = Separator::kDoubleColon,
                           .columns = {"id", "title", "genres"},
                           .header = false,
                           .text_column = 1};
  const Status status = Read("1::Toy Story (1995)::Comedy\n2::a::b::c::Drama\n3::x\n", format);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows_, (Rows{{"1", "Toy Story (1995)", "Comedy"}, {"2", "a::b::c", "Drama"}}));
  EXPECT_EQ(log_.examples().front(), "table:3: 2 fields, expected 3: id, title, genres");
}

TEST_F(TableReaderTest, MalformedLinesAreCountedAndTheFirstShown) {
  std::string content = "id\tname\n";
  for (int i = 0; i < 20; ++i) content += "1\ta\n";
  for (int i = 0; i < 8; ++i) content += "x\x01\ta\n";
  ASSERT_TRUE(Read(content, kTabs).ok());
  EXPECT_EQ(log_.files().front().rows, 20U);
  EXPECT_EQ(log_.malformed(), 8U);
  ASSERT_EQ(log_.examples().size(), InputLog::kExamples);
  EXPECT_EQ(log_.examples().front(), "table:22: id = 'x\\x01', expected a number in its range");
}

TEST_F(TableReaderTest, StrictFailsOnTheFirstMalformedLine) {
  const Status status = Read("id\tname\n1\ta\nx\ta\n", kTabs, true);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("table:3: id = 'x'"), std::string::npos) << status.message();
}

TEST_F(TableReaderTest, FilesOfAnotherKindAreRefused) {
  for (const std::string& content :
       {std::string(), std::string("a,b\n1,2\n"),
        std::string("\x7F"
                    "ELF\0\0\n\1\2",
                    9),
        std::string("id\tname\n"), std::string("id\tname\nx\ny\n1\ta\n")}) {
    const Status status = Read(content, kTabs);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << content;
    EXPECT_NE(status.message().find("table"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("expected"), std::string::npos) << status.message();
  }
}

TEST_F(TableReaderTest, FileReadTwiceCountsOnce) {
  const auto path = Write("table", "id\tname\n1\ta\n2\tb\nx\n");
  InputLog log;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ReadTable(path, kTabs, log, part_, [](TableRow&) {}).ok());
  }
  ASSERT_EQ(log.files().size(), 1U);
  EXPECT_EQ(log.files().front().rows, 2U);
  EXPECT_EQ(log.malformed(), 1U);
  EXPECT_EQ(log.examples().size(), 1U);
}

TEST_F(TableReaderTest, StopsWhenTheCallerCancels) {
  const auto path = Write("table", "id\tname\n1\ta\n");
  InputLog log;
  const WorkHooks hooks{.stopped = [] { return true; }};
  const Status status =
      ReadTable(path, kTabs, log, WorkPart(hooks, 0, 1, ""), [](TableRow&) { FAIL(); });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace codband::data
