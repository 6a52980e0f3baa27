#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "codband/base/status.h"

namespace codband::data {

// Progress reporting and cancellation of long-running work. Both may be empty; both are called from
// the thread that does the work.
struct WorkHooks {
  std::function<void(double done, std::string_view label)> progress = {};  // done from 0 to 1
  std::function<bool()> stopped = {};
};

// One phase of the work, from one share of the whole to another. Borrows the hooks.
class WorkPart {
 public:
  WorkPart(const WorkHooks& hooks, double begin, double end, std::string label)
      : hooks_(hooks), begin_(begin), end_(end), label_(std::move(label)) {}

  // Reports how much of this phase is done, from 0 to 1. kUnavailable if the caller cancels.
  Status Report(double share) const {
    if (hooks_.progress) hooks_.progress(begin_ + (end_ - begin_) * share, label_);
    if (hooks_.stopped && hooks_.stopped()) return {StatusCode::kUnavailable, "stopped"};
    return {};
  }

 private:
  const WorkHooks& hooks_;
  double begin_;
  double end_;
  std::string label_;
};

}  // namespace codband::data
