#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
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
    used_ = 0;
    bytes_ = 0;
    replaying_ = false;
  }
  // From now on the results recorded since StartRecording() are replayed, from the first.
  void StartReplay() {
    next_ = 0;
    next_place_ = 0;
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

  // The same for what does not fit into numbers: compute() is followed by save(T&), and replayed by
  // load(const T&). `bytes` is what a T takes; beyond kMostBytes in all it is not kept, and the
  // second copy computes as well. Memory is kept for the next recording.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20U;
  template <typename T, typename Compute, typename Save, typename Load>
  static void Follow(LearnMemo* memo, std::size_t bytes, const Compute& compute, const Save& save,
                     const Load& load) {
    const T* const kept = memo == nullptr ? nullptr : memo->NextKept<T>();
    if (kept != nullptr) return load(*kept);
    compute();
    if (memo != nullptr && !memo->replaying_) memo->Keep<T>(bytes, save);
  }

 private:
  struct Kept {
    virtual ~Kept() = default;
  };
  template <typename T>
  struct KeptObject final : Kept {
    T object = {};
  };
  struct Place {
    std::unique_ptr<Kept> kept = {};
    bool filled = false;
  };

  template <typename T, typename Save>
  void Keep(std::size_t bytes, const Save& save) {
    if (used_ == places_.size()) places_.emplace_back();
    Place& place = places_[used_++];
    place.filled = bytes_ + bytes <= kMostBytes;
    if (!place.filled) return;
    bytes_ += bytes;
    auto* kept = dynamic_cast<KeptObject<T>*>(place.kept.get());
    if (kept == nullptr) {
      place.kept = std::make_unique<KeptObject<T>>();
      kept = static_cast<KeptObject<T>*>(place.kept.get());
    }
    save(kept->object);
  }
  // While replaying: what is next, unless there was no room for it.
  template <typename T>
  const T* NextKept() {
    if (!replaying_) return nullptr;
    CODBAND_CHECK(next_place_ < used_);
    const Place& place = places_[next_place_++];
    if (!place.filled) return nullptr;
    const auto* const kept = dynamic_cast<const KeptObject<T>*>(place.kept.get());
    CODBAND_CHECK(kept != nullptr);
    return &kept->object;
  }

  void Replay(std::span<double> out) {
    CODBAND_CHECK(next_ + out.size() <= numbers_.size());
    std::ranges::copy(std::span(numbers_).subspan(next_, out.size()), out.begin());
    next_ += out.size();
  }

  std::vector<Place> places_;
  std::size_t used_ = 0;  // of this recording
  std::size_t next_place_ = 0;
  std::size_t bytes_ = 0;  // of what is kept
  std::vector<double> numbers_;
  std::size_t next_ = 0;
  bool replaying_ = false;
};

}  // namespace codband
