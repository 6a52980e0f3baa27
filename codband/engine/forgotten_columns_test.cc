// What a user sent in their context and features is forgotten with them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "codband/engine/column_owners.h"
#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

RankRequest VisitOf(const std::string& user, int visit, const std::string& city, double age) {
  RankRequest request{.event_id = fmt::format("{}-{}", user, visit), .user = user};
  request.context_features = {{"city=" + city, 1}, {"device=phone", 1}};
  request.user_features = {{"age", age}};
  return request;
}

void Learn(EngineBox& box, const RankRequest& request) {
  const auto reply = box.Rank(request);
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  ASSERT_TRUE(box.Reward(request.event_id, 1).ok());
}

std::map<std::string, ColumnReport> ColumnsOf(EngineBox& box) {
  std::map<std::string, ColumnReport> columns;
  for (const ColumnReport& column : box->Features().columns) columns[column.name] = column;
  return columns;
}

// Whether any record of the store has the word.
bool IsStored(const std::filesystem::path& directory, std::string_view word) {
  const auto store = store::OpenRocksDbStore(directory, {.read_only = true});
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  bool found = false;
  for (const store::Table table :
       {store::Table::kMeta, store::Table::kLog, store::Table::kPending, store::Table::kCheckpoint,
        store::Table::kCheckpointCopy, store::Table::kUsers, store::Table::kPeople}) {
    EXPECT_TRUE(store.value()
                    ->Scan(table, {}, {},
                           [&](std::string_view key, std::string_view value) {
                             found |= key.find(word) != key.npos || value.find(word) != value.npos;
                             return true;
                           })
                    .ok());
  }
  return found;
}

class ForgottenColumnsTest : public testing::TestWithParam<bool> {
 protected:
  ForgottenColumnsTest() {
    Item item{.id = "a", .features = {}, .named = {{"genre=jazz", 1}}, .tags = {}};
    EXPECT_TRUE(box_.Put({item}).ok());
    for (int i = 0; i < 3; ++i) Learn(box_, VisitOf("ann", i, "Hiddenham", 97 + i));
    Learn(box_, VisitOf("bob", 0, "Bath", 30));
    EXPECT_TRUE(box_.Rank(VisitOf("ann", 9, "Secretford", 90)).ok());  // no reward yet
    if (GetParam()) {
      EXPECT_TRUE(box_->Checkpoint().ok());
      box_.Open();
    }
  }

  EngineBox box_{{.erase_delay_ms = 0}, 0};
};

INSTANTIATE_TEST_SUITE_P(AfterARestartOrNot, ForgottenColumnsTest, testing::Bool());

TEST_P(ForgottenColumnsTest, ValuesOfOneUserAloneAreForgottenWithThem) {
  ASSERT_TRUE(ColumnsOf(box_).contains("genre=jazz × city=Hiddenham"));
  ASSERT_TRUE(box_.Forget("ann").ok());
  const auto columns = ColumnsOf(box_);
  for (const auto& [name, column] : columns) {
    EXPECT_EQ(name.find("Hiddenham"), name.npos) << name;
    EXPECT_EQ(name.find("Secretford"), name.npos) << name;
    if (name.find("forgotten") != name.npos) {
      EXPECT_EQ(column.count, 0U) << name;
    }
  }
  for (const char* name : {"city=Bath", "device=phone", "age", "genre=jazz × city=Bath"}) {
    EXPECT_TRUE(columns.contains(name)) << name;
  }
  // How old the eldest was is forgotten; who comes next is counted again.
  EXPECT_EQ(columns.at("age").max, 0);
  Learn(box_, VisitOf("bob", 1, "Bath", 31));
  EXPECT_EQ(ColumnsOf(box_).at("age").min, 31);
  EXPECT_EQ(ColumnsOf(box_).at("age").max, 31);

  ASSERT_TRUE(box_->Checkpoint().ok());
  box_.Close();
  EXPECT_FALSE(IsStored(box_.directory(), "Hiddenham"));
  EXPECT_FALSE(IsStored(box_.directory(), "Secretford"));
  EXPECT_TRUE(IsStored(box_.directory(), "Bath"));
  box_.Open();
  EXPECT_TRUE(box_->Check().ok());
  EXPECT_EQ(ColumnsOf(box_).size(), columns.size());
}

TEST_P(ForgottenColumnsTest, WhatAnotherUserSentTooStays) {
  Learn(box_, VisitOf("bob", 1, "Hiddenham", 30));
  ASSERT_TRUE(box_.Forget("ann").ok());
  EXPECT_TRUE(ColumnsOf(box_).contains("city=Hiddenham"));
  EXPECT_FALSE(ColumnsOf(box_).contains("city=Secretford"));
}

// The value comes again: it is a new column, after a restart too.
// What is counted is what it would be if they had never come.
TEST_P(ForgottenColumnsTest, CountsAndSumsOfTheUserAreTakenBack) {
  ASSERT_TRUE(box_.Forget("ann").ok());
  EngineBox never({}, 0);
  Item item{.id = "a", .features = {}, .named = {{"genre=jazz", 1}}, .tags = {}};
  ASSERT_TRUE(never.Put({item}).ok());
  Learn(never, VisitOf("bob", 0, "Bath", 30));
  const auto columns = ColumnsOf(box_);
  for (const auto& [name, expected] : ColumnsOf(never)) {
    ASSERT_TRUE(columns.contains(name)) << name;
    EXPECT_EQ(columns.at(name).count, expected.count) << name;
  }
  EXPECT_EQ(columns.at("device=phone").count, 1U);
  EXPECT_EQ(columns.at("age").count, 1U);
  // As often as one likes, and after a restart.
  Learn(box_, VisitOf("cleo", 0, "Bath", 40));
  ASSERT_TRUE(box_->Checkpoint().ok());
  box_.Open();
  ASSERT_TRUE(box_.Forget("cleo").ok());
  EXPECT_EQ(ColumnsOf(box_).at("age").count, 1U);
  ASSERT_TRUE(box_.Forget("bob").ok());
  for (const auto& [name, column] : ColumnsOf(box_)) EXPECT_EQ(column.count, 0U) << name;
}

TEST_P(ForgottenColumnsTest, AForgottenValueMayComeAgain) {
  ASSERT_TRUE(box_.Forget("ann").ok());
  const std::size_t before = ColumnsOf(box_).size();
  for (int i = 10; i < 13; ++i) Learn(box_, VisitOf("ann", i, "Hiddenham", 40));
  EXPECT_GT(ColumnsOf(box_).size(), before);
  EXPECT_EQ(ColumnsOf(box_).at("city=Hiddenham").count, 3U);
  const auto names = [&] {
    std::vector<std::string> all;
    for (const ColumnReport& column : box_->Features().columns) all.push_back(column.name);
    return all;
  };
  const std::vector<std::string> columns = names();
  box_.Open();
  EXPECT_EQ(names(), columns);
  EXPECT_EQ(ColumnsOf(box_).at("city=Hiddenham").count, 3U);
  EXPECT_EQ(box_->GetUser("ann").value().observations, 3U);
  EXPECT_EQ(box_->Stats().quarantined, 0U);
  EXPECT_TRUE(box_->Check().ok());
}

}  // namespace
}  // namespace codband::engine
