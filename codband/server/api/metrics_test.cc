#include "codband/server/api/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace codband::server {
namespace {

using std::chrono::microseconds;

bool HasLine(const std::string& text, std::string_view line) {
  return ("\n" + text).find("\n" + std::string(line) + "\n") != std::string::npos;
}

constexpr std::array<Route, 2> kTwoRoutes = {{
    {Method::kGet, "/v1/models", "models"},
    {Method::kPost, "/v1/rank", "rank", BodyKind::kWhole},
}};
constexpr std::size_t kRank = 1;

std::string Render(MetricsFacts facts, const std::vector<const RouteMetrics*>& threads = {}) {
  std::vector<RouteMetrics::Totals> totals(kTwoRoutes.size() + 1);
  for (const RouteMetrics* thread : threads) thread->AddTo(totals);
  facts.routes = kTwoRoutes;
  facts.totals = totals;
  return RenderMetrics(facts);
}

TEST(MetricsTest, ThreadsAreAddedUp) {
  RouteMetrics first(kTwoRoutes.size());
  RouteMetrics second(kTwoRoutes.size());
  first.Record(kRank, 200, microseconds(50));
  first.Record(kRank, 400, microseconds(300));
  second.Record(kRank, 200, microseconds(2'000'000));
  second.Record(kNoRoute, 404, microseconds(1));
  const std::string text = Render({}, {&first, &second});
  const std::string rank = R"(route="/v1/rank",method="POST")";
  EXPECT_TRUE(HasLine(text, "codband_http_requests_total{" + rank + R"(,status="2xx"} 2)")) << text;
  EXPECT_TRUE(HasLine(text, "codband_http_requests_total{" + rank + R"(,status="4xx"} 1)"));
  EXPECT_TRUE(
      HasLine(text, R"(codband_http_requests_total{route="other",method="other",status="4xx"} 1)"));
  EXPECT_TRUE(HasLine(text, "codband_http_request_seconds_count{" + rank + "} 3"));
  EXPECT_TRUE(HasLine(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="0.0001"} 1)"));
  EXPECT_TRUE(HasLine(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="0.0005"} 2)"));
  EXPECT_TRUE(HasLine(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="+Inf"} 3)"));
}

TEST(MetricsTest, ShowsTheEngine) {
  engine::EngineStats stats;
  stats.policy = "cod\"band";
  stats.rewards_late = 3;
  stats.committed_sequence = 12;
  stats.applied_sequence = 5;
  stats.changes_last_hour = 4;
  stats.store.disk_bytes = 1024;
  const std::string text =
      Render({.server = {.connections = 2, .start_time_ms = 1500}, .engine = stats});
  EXPECT_TRUE(HasLine(text, R"(codband_rewards_total{outcome="late"} 3)"));
  EXPECT_TRUE(HasLine(text, "codband_learner_lag_events 7"));
  EXPECT_TRUE(HasLine(text, "codband_changes_last_hour 4"));
  EXPECT_TRUE(HasLine(text, "codband_store_disk_bytes 1024"));
  EXPECT_TRUE(HasLine(text, "codband_store_up 1"));
  EXPECT_TRUE(HasLine(text, "codband_connections 2"));
  EXPECT_TRUE(HasLine(text, "codband_start_time_seconds 1.5"));
  EXPECT_NE(text.find(R"(policy="cod\"band")"), std::string::npos);
}

TEST(MetricsTest, EveryNameHasThePrefixAndOneDescription) {
  const std::string text = Render({});
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("# HELP ")) {
      EXPECT_EQ(text.find(line), text.rfind(line.substr(0, line.find(' ', 7) + 1))) << line;
    }
    EXPECT_TRUE(line.starts_with("codband_") || line.starts_with("# HELP codband_") ||
                line.starts_with("# TYPE codband_"))
        << line;
  }
}

TEST(MetricsTest, ALearnerThatIsAheadHasNoLag) {
  engine::EngineStats stats;
  stats.committed_sequence = 4;
  stats.applied_sequence = 5;  // read a moment later
  EXPECT_TRUE(HasLine(Render({.engine = stats}), "codband_learner_lag_events 0"));
}

TEST(MetricsTest, TheDecisionLogIsShownIfThereIsOne) {
  EXPECT_FALSE(HasLine(Render({}), "codband_decision_log_lines_total 0"));
  const std::string text = Render({.decision_log = DecisionLogStats{
                                       .written = 5, .dropped = 1, .failed = 2, .last_error = {}}});
  EXPECT_TRUE(HasLine(text, "codband_decision_log_lines_total 5"));
  EXPECT_TRUE(HasLine(text, "codband_decision_log_lost_total 3"));
}

}  // namespace
}  // namespace codband::server
