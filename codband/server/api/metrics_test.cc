#include "codband/server/api/metrics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace codband::server {
namespace {

using std::chrono::microseconds;

bool Has(const std::string& text, std::string_view line) {
  return ("\n" + text).find("\n" + std::string(line) + "\n") != std::string::npos;
}

TEST(MetricsTest, ThreadsAreAddedUp) {
  RouteMetrics first;
  RouteMetrics second;
  first.Record(RouteId::kRank, 200, microseconds(50));
  first.Record(RouteId::kRank, 400, microseconds(300));
  second.Record(RouteId::kRank, 200, microseconds(2'000'000));
  second.Record(RouteId::kOther, 404, microseconds(1));
  const std::vector<const RouteMetrics*> threads = {&first, &second};
  const std::string text = RenderMetrics(threads, {}, {});
  const std::string rank = R"(route="/v1/rank",method="POST")";
  EXPECT_TRUE(Has(text, "codband_http_requests_total{" + rank + R"(,status="2xx"} 2)")) << text;
  EXPECT_TRUE(Has(text, "codband_http_requests_total{" + rank + R"(,status="4xx"} 1)"));
  EXPECT_TRUE(
      Has(text, R"(codband_http_requests_total{route="other",method="other",status="4xx"} 1)"));
  EXPECT_TRUE(Has(text, "codband_http_request_seconds_count{" + rank + "} 3"));
  EXPECT_TRUE(Has(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="0.0001"} 1)"));
  EXPECT_TRUE(Has(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="0.0005"} 2)"));
  EXPECT_TRUE(Has(text, "codband_http_request_seconds_bucket{" + rank + R"(,le="+Inf"} 3)"));
}

TEST(MetricsTest, ShowsTheEngine) {
  engine::EngineStats stats;
  stats.policy = "cod\"band";
  stats.rewards_late = 3;
  stats.committed_sequence = 12;
  stats.applied_sequence = 5;
  stats.changes_last_hour = 4;
  stats.store.disk_bytes = 1024;
  const std::string text = RenderMetrics({}, {.connections = 2, .start_time_ms = 1500}, stats);
  EXPECT_TRUE(Has(text, R"(codband_rewards_total{outcome="late"} 3)"));
  EXPECT_TRUE(Has(text, "codband_learner_lag_events 7"));
  EXPECT_TRUE(Has(text, "codband_changes_last_hour 4"));
  EXPECT_TRUE(Has(text, "codband_store_disk_bytes 1024"));
  EXPECT_TRUE(Has(text, "codband_store_up 1"));
  EXPECT_TRUE(Has(text, "codband_connections 2"));
  EXPECT_TRUE(Has(text, "codband_start_time_seconds 1.5"));
  EXPECT_NE(text.find(R"(policy="cod\"band")"), std::string::npos);
}

TEST(MetricsTest, EveryNameHasThePrefixAndOneDescription) {
  const std::string text = RenderMetrics({}, {}, {});
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
  EXPECT_TRUE(Has(RenderMetrics({}, {}, stats), "codband_learner_lag_events 0"));
}

TEST(MetricsTest, TheDecisionLogIsThereIfThereIsOne) {
  EXPECT_FALSE(Has(RenderMetrics({}, {}, {}), "codband_decision_log_lines_total 0"));
  const ServerFacts facts{
      .decision_log = DecisionLogStats{.written = 5, .dropped = 1, .failed = 2, .last_error = {}}};
  const std::string text = RenderMetrics({}, facts, {});
  EXPECT_TRUE(Has(text, "codband_decision_log_lines_total 5"));
  EXPECT_TRUE(Has(text, "codband_decision_log_lost_total 3"));
}

}  // namespace
}  // namespace codband::server
