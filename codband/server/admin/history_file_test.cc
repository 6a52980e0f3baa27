#include "codband/server/admin/history_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace codband::server {
namespace {

using Json = nlohmann::json;

// A file in a directory of its own, and a server that keeps what it is sent.
class HistoryFileTest : public testing::Test {
 protected:
  HistoryFileTest() {
    std::string name = testing::TempDir() + "historyXXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~HistoryFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  PostHistory Post() {
    return [this](const std::string& body) -> Result<std::string> {
      if (failures_ > 0 && --failures_ == 0) return Status(StatusCode::kUnavailable, "gone");
      const Json events = Json::parse(body)["events"];
      Json skipped = Json::array();
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i]["itemId"] == "unknown") {
          skipped.push_back({{"index", i}, {"reason", "there is no such item"}});
        } else {
          sent_.push_back(events[i]);
        }
      }
      return Json{{"accepted", events.size() - skipped.size()},
                  {"duplicates", 0},
                  {"skipped", skipped},
                  {"status", "ok"}}
          .dump();
    };
  }

  std::filesystem::path directory_;
  std::vector<Json> sent_;
  int failures_ = 0;  // the call of this number fails; 0: none
};

TEST_F(HistoryFileTest, CsvIsSentInOrderAndBadRowsAreCounted) {
  const std::string file = Write("h.csv",
                                 "user,item,reward,time\nann,a,1,monday\nbob,b,x,monday\n"
                                 "\"c,d\",unknown,0.5,\nann,a,0,tuesday\n");
  const auto report = SendHistoryFile({.file = file}, Post());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().records, 4U);
  EXPECT_EQ(report.value().accepted, 2U);
  EXPECT_EQ(report.value().left_out, 2U);
  ASSERT_EQ(report.value().problems.size(), 2U);
  EXPECT_EQ(report.value().problems[0], file + ":3: reward = 'x', expected a number");
  EXPECT_EQ(report.value().problems[1], file + ":4: there is no such item");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0]["userId"], "ann");
  EXPECT_EQ(sent_[0]["time"], "monday");
  EXPECT_EQ(sent_[1]["value"], 0);
  EXPECT_NE(sent_[0]["eventId"], sent_[1]["eventId"]);
}

TEST_F(HistoryFileTest, InterruptedImportGoesOnAndAFinishedOneSendsNothing) {
  std::string text;
  for (int i = 0; i < 25; ++i) {
    text += R"({"userId":"u","itemId":"a","value":)" + std::to_string(i) + "}\n";
  }
  const std::string file = Write("h.json", text);
  const HistoryFileOptions options{.file = file, .format = HistoryFormat::kNdjson, .batch = 10};
  failures_ = 2;  // the second batch
  EXPECT_EQ(SendHistoryFile(options, Post()).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(sent_.size(), 10U);
  const auto resumed = SendHistoryFile(options, Post());
  ASSERT_TRUE(resumed.ok());
  EXPECT_EQ(resumed.value().resumed, 10U);
  EXPECT_EQ(resumed.value().accepted, 15U);
  ASSERT_EQ(sent_.size(), 25U);
  for (int i = 0; i < 25; ++i) EXPECT_EQ(sent_[static_cast<std::size_t>(i)]["value"], i);
  EXPECT_EQ(SendHistoryFile(options, Post()).value().accepted, 0U);
  EXPECT_EQ(sent_.size(), 25U);
  // What is appended later is sent; another file is not taken for this one.
  std::ofstream(file, std::ios::app) << R"({"userId":"u","itemId":"a","value":99})"
                                     << "\n";
  EXPECT_EQ(SendHistoryFile(options, Post()).value().accepted, 1U);
  Write("h.json", R"({"userId":"other","itemId":"a","value":1})");
  EXPECT_EQ(SendHistoryFile(options, Post()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HistoryFileTest, AnotherServerGetsTheFileFromItsBeginning) {
  const std::string file = Write("h.csv", "user,item,reward\nann,a,1\nbob,b,0\n");
  HistoryFileOptions options{.file = file, .server = "one"};
  EXPECT_EQ(SendHistoryFile(options, Post()).value().accepted, 2U);
  EXPECT_EQ(SendHistoryFile(options, Post()).value().resumed, 2U);
  options.server = "another";
  const auto report = SendHistoryFile(options, Post());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().resumed, 0U);
  EXPECT_EQ(report.value().accepted, 2U);
}

TEST_F(HistoryFileTest, OneBadRecordDoesNotStopTheOthers) {
  const std::string csv = Write("h.csv", "user,item,reward\nren\xe9,a,1\n,a,1\nbob,b,0\n");
  const auto rows = SendHistoryFile({.file = csv}, Post());
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows.value().accepted, 1U);
  EXPECT_EQ(rows.value().left_out, 2U);
  const std::string log = Write(
      "h.dsjson",
      R"({"_label_cost":-1,"_labelIndex":0,"c":{"User":{"id":"ann"},"_multi":[1]}})"
      "\n"
      R"({"_label_cost":-1,"_labelIndex":0,"c":{"User":{"id":""},"_multi":[{"_tag":"a"}]}})"
      "\n"
      R"({"_label_cost":-1,"_labelIndex":0,"c":{"User":{"id":"ann"},"_multi":[{"_tag":"a","Features":{"g=x":1}}]}})"
      "\n");
  const auto lines = SendHistoryFile({.file = log, .format = HistoryFormat::kDsjson}, Post());
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_EQ(lines.value().accepted, 1U);
  EXPECT_EQ(lines.value().left_out, 2U);
  EXPECT_EQ(sent_.back()["features"], Json({{"g=x", 1}}));
}

// Trees of a text that nests deeply are walked by recursion.
TEST_F(HistoryFileTest, HostileLinesAndMarksAreLeftOut) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  const std::string file =
      Write("h.json", R"({"userId":"u","itemId":"a","value":1,"features":)" + deep +
                          "}\n"
                          R"({"userId":"u","itemId":"unknown","value":1,"time":"\u001b[2J"})"
                          "\n"
                          R"({"userId":"u","itemId":"a","value":1})");
  const HistoryFileOptions options{.file = file, .format = HistoryFormat::kNdjson};
  const auto report = SendHistoryFile(options, Post());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().accepted, 1U);
  ASSERT_EQ(report.value().left_out, 2U);
  EXPECT_EQ(report.value().problems[0], file + ":1: nests deeper than 60");
  const std::string log =
      Write("d.json", R"({"_label_cost":0,"_label_Action":-9223372036854775808,)"
                      R"("c":{"User":{"id":"bob"},"_multi":[{"i":{"id":"c"}}]}})");
  EXPECT_EQ(
      SendHistoryFile({.file = log, .format = HistoryFormat::kDsjson}, Post()).value().left_out,
      1U);
  const std::string csv = Write("h.csv", "user,item,reward\nann,a,\x1b[2J\n");
  EXPECT_EQ(SendHistoryFile({.file = csv}, Post()).value().problems.at(0),
            csv + ":2: reward = ' [2J', expected a number");
  for (const char* const mark : {R"({"server":1,"first":2,"records":"x"})", "[]", "null", "\xff"}) {
    Write("h.json.imported", mark);
    EXPECT_EQ(SendHistoryFile(options, Post()).status().code(), StatusCode::kInvalidArgument)
        << mark;
  }
}

TEST_F(HistoryFileTest, DecisionLogsGiveTheActionTakenAndMinusItsCost) {
  const std::string file = Write(
      "d.json",
      R"({"_label_cost":-1,"_label_Action":2,"Timestamp":"t","c":{"User":{"id":"ann"},"_multi":[{"_tag":"a","f":{"x":1}},{"_tag":"b","f":{"y":"red"}}]}})"
      "\n"
      R"({"_label_cost":0.5,"_labelIndex":0,"c":{"User":{"id":"bob"},"_multi":[{"i":{"id":"c"}}]}})"
      "\n"
      R"({"_label_cost":0,"_labelIndex":3,"c":{"User":{"id":"bob"},"_multi":[{"i":{"id":"c"}}]}})"
      "\n{\"EventId\":\"x\"}\nnonsense\n");
  const auto report = SendHistoryFile({.file = file, .format = HistoryFormat::kDsjson}, Post());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().accepted, 2U);
  EXPECT_EQ(report.value().left_out, 3U);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0]["itemId"], "b");
  EXPECT_EQ(sent_[0]["value"], 1);
  EXPECT_EQ(sent_[0]["features"], (Json{{"f", {{"y", "red"}}}}));
  EXPECT_EQ(sent_[1]["itemId"], "c");
  EXPECT_EQ(sent_[1]["value"], -0.5);
}

TEST_F(HistoryFileTest, MissingColumnsAndEmptyFilesAreTold) {
  const auto fault = [&](const HistoryFileOptions& options) {
    return SendHistoryFile(options, Post()).status();
  };
  const std::string file = Write("h.csv", "user,sku,reward\nann,a,1\n");
  EXPECT_NE(fault({.file = file}).message().find("--item-column"), std::string::npos);
  EXPECT_EQ(fault({.file = Write("e.csv", "user,item,reward\n")}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(fault({.file = (directory_ / "nothing").string()}).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace codband::server
