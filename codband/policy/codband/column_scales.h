#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"

namespace codband {

// The units of features, learned: prices in cents, raw years and names that are 0 or 1 stand side
// by side. The prior of a model takes one standard deviation of any column to be worth about as
// much, so it needs to know how large the values of a column are; and where they are far from 0
// compared to how they differ (years), what counts is how they differ.
//
// A column is judged by its first 16 values that are not 0, and again by as many when 64, 256, …
// have come: medians, which single outliers do not move.
//   size     its median magnitude, and at least an eighth of its second largest so far: where the
//            same few vectors come again and again, the median is that of one of them. (The second
//            largest grows eightfold at most with a value, so that outliers do not move it far.)
//            Columns within a factor of 8 of the usual size are left alone, because comparable
//            magnitudes are probably intended; the usual size is their median. Any other, and one
//            whose first value is beyond 8, has units of its own and
//            the weight w = 4^-e, 2^e the nearest power of two to size / usual: its parameter has
//            the prior variance w / λ where others have 1 / λ, as if the column had been divided by
//            2^e. No sum changes when a weight does: the prior alone does.
//   centre   of a column whose first value is beyond 8: the median of its first values, if its
//            distance from 0 exceeds 8 times the spread of the values. Models see the difference
//            from the centre, and the intercept takes the rest; a value of 0 is a missing one and
//            is taken to be the centre. Until the first values are known such a column is not
//            looked at, so that nothing learned has to be moved. A centre never changes.
//
// What is judged: nothing (all weights are 1, but columns are counted), sizes, or centres as well,
// for which models need an intercept. An observation allocates only if a column is judged by it.
// Not thread-safe for writing; const functions may run concurrently.
class ColumnScales {
 public:
  enum class Judged { kNothing, kSizes, kSizesAndCentres };
  ColumnScales(std::size_t features, Judged judged);

  // w, a number for each feature; empty if all are 1.
  std::span<const double> weights() const { return weights_; }
  // How many columns have had a value other than 0.
  std::size_t active() const { return active_; }

  // Whether models see something else than what is given, and what they see, in place.
  bool shifts() const { return !shifted_.empty(); }
  void Shift(std::span<double> features) const;
  // What the centres add to the intercept of `theta` if it is to be applied to what is given.
  double ShiftedIntercept(std::span<const double> theta) const;

  // The features of an observation, as they were given. `counts`: whether they may be used to
  // estimate scales. Returns whether a weight has changed.
  bool Observe(std::span<const double> features, bool counts);

  void Grow(std::size_t features);

  void Save(ByteWriter& out) const;
  // What was saved with as many features, or fewer.
  void Load(ByteReader& in);

  // Partitions (shared_pool.h) must see columns alike: what one finds is a proposal, and what the
  // pool says has effect. A column whose first value is beyond 8 is not looked at until it does.

  // kWaiting: its first value was beyond 8, and it is not known yet which of the next two it is.
  enum class State : std::uint8_t { kPlain, kWaiting, kOwnUnits, kCentred };
  // What a column is taken to be.
  struct View {
    State state = State::kPlain;
    int exponent = 0;
    double centre = 0;

    bool operator==(const View&) const = default;
  };
  struct Proposal {
    std::uint32_t column = 0;
    std::uint64_t count = 0;  // of values; 0: what the pool says
    View proposed = {};
    View used = {};

    bool operator==(const Proposal&) const = default;
  };
  static void SaveProposals(std::span<const Proposal> proposals, ByteWriter& out);
  static std::vector<Proposal> LoadProposals(ByteReader& in);

  void BePartition();
  bool is_partition() const { return !agreed_.empty(); }
  // Of every column that has had a value, in order.
  std::vector<Proposal> Propose() const;
  // What is used by all from now on. `before`: what was agreed on so far; centres stay.
  static std::vector<Proposal> Agree(std::span<const std::vector<Proposal>> partitions,
                                     std::span<const Proposal> before);
  void Adopt(std::span<const Proposal> agreed);
  // What has effect.
  std::vector<Proposal> Agreed() const;
  // Partitions become one: this one, whose pool is the newest, has seen what all have, and what had
  // effect in it holds.
  void BeWhole(std::span<const ColumnScales* const> partitions);
  static std::vector<double> Weights(std::span<const Proposal> agreed, std::size_t features);

 private:
  static constexpr std::size_t kSample = 16;
  struct Column {
    std::uint64_t count = 0;  // of values other than 0
    State state = State::kPlain;
    int exponent = 0;
    double centre = 0;
    double size = 0;                         // 0: not known
    double largest = 0;                      // magnitude so far
    double second = 0;                       // the next one, growing eightfold at most
    std::array<float, kSample> sample = {};  // values that it is being judged by
    std::uint8_t sampled = 0;                // how many there are

    bool own_units() const { return state != State::kPlain || exponent != 0; }
  };

  static void Judge(Column& column);
  static bool NoteMagnitude(Column& column, double value);
  static bool Rescale(Column& column, double usual);
  double UsualSize() const;
  void Refresh();
  // What has effect of a column.
  View ViewOf(std::size_t j) const {
    if (!agreed_.empty()) return agreed_[j];
    return {columns_[j].state, columns_[j].exponent, columns_[j].centre};
  }

  Judged judged_;
  std::size_t active_ = 0;
  std::vector<Column> columns_;
  std::vector<View> agreed_;  // of partitions; empty: what is in the columns
  // What follows from the columns.
  std::vector<double> weights_;
  std::vector<std::uint16_t> shifted_;  // those that are waiting or centred
};

}  // namespace codband
