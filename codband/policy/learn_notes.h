#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "codband/base/check.h"

namespace codband {

// Numbers that take long to compute, taken down while one policy learns, and read by a second one
// that learns the same in the same state. What the second learns is the same bits as if it had
// computed them itself.
class LearnNotes {
 public:
  // What comes next is computed and taken down; what was there is gone.
  void StartWriting() {
    numbers_.clear();
    reading_ = false;
  }
  // What was taken down since StartWriting() is read from the start.
  void StartReading() {
    next_ = 0;
    reading_ = true;
  }

  // Fills `out` with the numbers that come next, or, while writing or without notes, has compute()
  // fill it.
  template <typename Compute>
  static void Fill(LearnNotes* notes, std::span<double> out, const Compute& compute) {
    if (notes != nullptr && notes->reading_) return notes->Read(out);
    compute();
    if (notes != nullptr) {
      notes->numbers_.insert(notes->numbers_.end(), out.begin(), out.end());
    }
  }

 private:
  void Read(std::span<double> out) {
    CODBAND_CHECK(next_ + out.size() <= numbers_.size());
    std::ranges::copy(std::span(numbers_).subspan(next_, out.size()), out.begin());
    next_ += out.size();
  }

  std::vector<double> numbers_;
  std::size_t next_ = 0;
  bool reading_ = false;
};

}  // namespace codband
