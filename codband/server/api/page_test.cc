#include "codband/server/api/page.h"

#include <gtest/gtest.h>

#include <string>

namespace codband::server {
namespace {

bool PageHas(const std::string& page, std::string_view what) {
  return page.find(what) != std::string::npos;
}

TEST(PageTest, AnEmptyEngineHasAPage) {
  const std::string page = RenderPage({});
  EXPECT_TRUE(PageHas(page, "None yet"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(PageTest, ShowsWhatItWasGiven) {
  PageFacts facts{.mode = "apprentice", .start_time_ms = 0, .now_ms = 5'000'000};
  facts.stats.policy = "codband:paper";
  facts.stats.ranks = 1'234'567;
  facts.models.resize(2);
  facts.models[0].users = 40;
  facts.models[1].users = 10;
  facts.models[0].items = {{"song", 0.91}};
  facts.models[0].tags = {{"jazz", 3}};
  facts.changes = {{"ada", 4'990'000, 7, kNoModel}};
  const std::string page = RenderPage(facts);
  for (const char* text : {"apprentice", "codband:paper", "1,234,567", "1 h 23 min", "width:100.0%",
                           "width:25.0%", "song", "0.91", "jazz", "ada", "10 s ago", "/metrics",
                           "/openapi.json", "/v1/health/ready", ">ready<"}) {
    EXPECT_TRUE(PageHas(page, text)) << text;
  }
}

TEST(PageTest, EverythingFromOutsideIsEscaped) {
  const std::string evil = "<script>\"'&";
  PageFacts facts{.mode = evil};
  facts.stats.policy = evil;
  facts.stats.last_error = evil;
  facts.models.resize(1);
  facts.models[0].items = {{evil, 1}};
  facts.models[0].tags = {{evil, 1}};
  facts.changes = {{evil, 0, 1, 2}};
  const std::string page = RenderPage(facts);
  EXPECT_FALSE(PageHas(page, "<script"));
  EXPECT_TRUE(PageHas(page, "&lt;script&gt;&quot;&#39;&amp;"));
  EXPECT_TRUE(PageHas(page, "not ready"));
}

TEST(PageTest, NeedsNothingFromElsewhere) {
  const std::string page = RenderPage({});
  EXPECT_FALSE(PageHas(page, "http://"));
  EXPECT_FALSE(PageHas(page, "https://"));
  EXPECT_FALSE(PageHas(page, "<script"));
}

}  // namespace
}  // namespace codband::server
