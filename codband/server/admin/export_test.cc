#include "codband/server/admin/export.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "codband/base/file.h"
#include "codband/server/admin/admin_testing.h"
#include "codband/server/admin/data_directory.h"

namespace codband::server {
namespace {

using Json = nlohmann::json;

class ExportTest : public AdminTest {};

std::string Exported(engine::Engine& engine) {
  std::string text;
  EXPECT_TRUE(ExportJson(engine, [&](std::string_view part) {
                text += part;
                return true;
              }).ok());
  return text;
}

TEST_F(ExportTest, HasEveryModelAndEveryUser) {
  const auto engine = Open();
  Learn(*engine, 30);
  const Json exported = Json::parse(Exported(*engine));
  EXPECT_EQ(exported["meta"]["dim"], 2);
  EXPECT_EQ(exported["meta"]["learned"], 30);
  EXPECT_EQ(exported["meta"]["items"], 2);
  ASSERT_EQ(exported["users"].size(), 3U);
  std::set<std::string> users;
  for (const Json& user : exported["users"]) {
    users.insert(user["user"]);
    EXPECT_EQ(user["observations"], 10);
  }
  EXPECT_EQ(users, (std::set<std::string>{"u0", "u1", "u2"}));
  ASSERT_EQ(exported["models"].size(), exported["meta"]["models"]);
  for (std::size_t i = 0; i < exported["models"].size(); ++i) {
    EXPECT_EQ(exported["models"][i]["parameter"].size(), 2U);
    if (i > 0) {
      EXPECT_LT(exported["models"][i - 1]["id"], exported["models"][i]["id"]);
    }
  }
}

TEST_F(ExportTest, AnEmptyEngineIsAnObjectTheSame) {
  const Json exported = Json::parse(Exported(*Open()));
  EXPECT_EQ(exported["models"], Json::array());
  EXPECT_EQ(exported["users"], Json::array());
}

TEST_F(ExportTest, StopsWhenTheSinkDoes) {
  const auto engine = Open();
  Learn(*engine, 30);
  for (int most = 0; most < 6; ++most) {
    int parts = 0;
    EXPECT_TRUE(ExportJson(*engine, [&](std::string_view) { return ++parts <= most; }).ok());
    EXPECT_EQ(parts, most + 1);
  }
}

TEST_F(ExportTest, AFileIsCompleteOrAsItWas) {
  { Learn(*Open(), 30); }
  const std::string expected = Exported(*OpenDataForReading(data()).value());
  ASSERT_TRUE(WriteFileDurably(path("out.exported"), "before").ok());
  ASSERT_TRUE(ExportToFile(data(), path("out.exported")).ok());
  EXPECT_EQ(ReadFile(path("out.exported")).value(), expected);
  EXPECT_EQ(ExportToFile(path("none"), path("out.exported")).code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(path("out.exported")).value(), expected);
  EXPECT_EQ(ExportToFile(data(), path("no/such/out.exported")).code(), StatusCode::kIoError);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path(""))) ++files;
  EXPECT_EQ(files, 2U) << "data and out.exported, and nothing unfinished";
}

TEST_F(ExportTest, AnOutputThatTakesNothingIsAnError) {
  { Learn(*Open(), 3); }
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(ExportTo(data(), full).code(), StatusCode::kIoError);
  std::fclose(full);
}

}  // namespace
}  // namespace codband::server
