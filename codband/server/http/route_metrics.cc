#include "codband/server/http/route_metrics.h"

#include <algorithm>

#include "codband/base/check.h"

namespace codband::server {

void RouteMetrics::Record(std::size_t route, int status, std::chrono::nanoseconds latency) {
  Counts& counts = counts_[std::min(route, counts_.size() - 1)];
  counts.by_class[static_cast<std::size_t>(std::clamp(status / 100, 1, 5))].Add(1);
  const double seconds = std::chrono::duration<double>(latency).count();
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  counts.buckets[static_cast<std::size_t>(bound - kBounds.begin())].Add(1);
  counts.nanoseconds.Add(static_cast<std::uint64_t>(latency.count()));
}

void RouteMetrics::AddTo(std::vector<Totals>& totals) const {
  CODBAND_CHECK(totals.size() == counts_.size());
  for (std::size_t route = 0; route < counts_.size(); ++route) {
    const Counts& counts = counts_[route];
    Totals& total = totals[route];
    for (std::size_t i = 0; i < total.by_class.size(); ++i) {
      total.by_class[i] += counts.by_class[i].value();
    }
    for (std::size_t i = 0; i < total.buckets.size(); ++i) {
      total.buckets[i] += counts.buckets[i].value();
    }
    total.nanoseconds += counts.nanoseconds.value();
  }
}

}  // namespace codband::server
