#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "codband/base/check.h"

namespace codband {

// Memoisation across the two copies of a left-right pair (engine/left_right.h). Both copies learn
// the same entries in the same state; the first records its expensive intermediate results in the
// memo, the second replays them instead of computing them again. Bit for bit, both learn what they
// would have learned without a memo.
//
// Results are matched by order alone, so both copies must ask for the same ones in the same order.
// Not thread-safe. A policy whose learning is cheap ignores its memo.
class LearnMemo {
 public:
  // From now on results are computed and recorded; those of before are dropped.
  void StartRecording() {
    numbers_.clear();
    replaying_ = false;
  }
  // From now on the results recorded since StartRecording() are replayed, from the first.
  void StartReplay() {
    next_ = 0;
    replaying_ = true;
  }

  // Fills `out`: from the memo while replaying, otherwise by compute(), which is recorded. A null
  // memo neither records nor replays.
  template <typename Compute>
  static void Fill(LearnMemo* memo, std::span<double> out, const Compute& compute) {
    if (memo != nullptr && memo->replaying_) return memo->Replay(out);
    compute();
    if (memo != nullptr) {
      memo->numbers_.insert(memo->numbers_.end(), out.begin(), out.end());
    }
  }

 private:
  void Replay(std::span<double> out) {
    CODBAND_CHECK(next_ + out.size() <= numbers_.size());
    std::ranges::copy(std::span(numbers_).subspan(next_, out.size()), out.begin());
    next_ += out.size();
  }

  std::vector<double> numbers_;
  std::size_t next_ = 0;
  bool replaying_ = false;
};

}  // namespace codband
