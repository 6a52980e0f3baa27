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
  const Json json = Json::parse(Exported(*engine));
  EXPECT_EQ(json["meta"]["dim"], 2);
  EXPECT_EQ(json["meta"]["learned"], 30);
  EXPECT_EQ(json["meta"]["items"], 2);
  ASSERT_EQ(json["users"].size(), 3U);
  std::set<std::string> users;
  for (const Json& user : json["users"]) {
    users.insert(user["user"]);
    EXPECT_EQ(user["observations"], 10);
  }
  EXPECT_EQ(users, (std::set<std::string>{"u0", "u1", "u2"}));
  ASSERT_EQ(json["models"].size(), json["meta"]["models"]);
  for (std::size_t i = 0; i < json["models"].size(); ++i) {
    EXPECT_EQ(json["models"][i]["parameter"].size(), 2U);
    if (i > 0) {
      EXPECT_LT(json["models"][i - 1]["id"], json["models"][i]["id"]);
    }
  }
}

TEST_F(ExportTest, AnEmptyEngineIsAnObjectTheSame) {
  const Json json = Json::parse(Exported(*Open()));
  EXPECT_EQ(json["models"], Json::array());
  EXPECT_EQ(json["users"], Json::array());
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
  ASSERT_TRUE(WriteFileDurably(path("out.json"), "before").ok());
  ASSERT_TRUE(ExportToFile(data(), path("out.json")).ok());
  EXPECT_EQ(ReadFile(path("out.json")).value(), expected);
  EXPECT_EQ(ExportToFile(path("none"), path("out.json")).code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(path("out.json")).value(), expected);
  EXPECT_EQ(ExportToFile(data(), path("no/such/out.json")).code(), StatusCode::kIoError);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path(""))) ++files;
  EXPECT_EQ(files, 2U) << "data and out.json, and nothing unfinished";
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
