#include "codband/engine/column_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace codband::engine {

using features::ColumnSpace;

void ColumnBook::Append(std::uint64_t first, std::span<const ColumnSpace::Addition> additions) {
  const features::ColumnLimits most{.columns = features::ColumnLimits::kMost};
  if (first < space_.size() || first > most.all()) {
    throw std::runtime_error(
        fmt::format("its columns begin at {}, expected {}", first, space_.size()));
  }
  const ColumnSpace::Mark before = space_.mark();
  const auto append = [&](const ColumnSpace::Addition& addition) {
    const Status status = space_.Append(addition);
    if (status.ok()) return;
    space_.ReturnTo(before);
    throw std::runtime_error(status.message());
  };
  while (space_.size() < first) append({.name = fmt::format("lost column {}", space_.size())});
  for (const ColumnSpace::Addition& addition : additions) append(addition);
  uses_.resize(space_.size());
}

void ColumnBook::Forget(std::span<const std::uint32_t> columns) {
  const auto dropped = [&](std::uint32_t column) {
    return std::ranges::find(columns, column) != columns.end();
  };
  for (std::uint32_t i = 0; i < space_.size(); ++i) {
    const ColumnSpace::Column& column = space_.column(i);
    const bool crossing = column.kind == ColumnSpace::Kind::kCrossing;
    if (dropped(crossing ? column.other : i)) {
      uses_[i] = {};
    } else if (column.side != features::Side::kItem && uses_[i].count > 0) {
      uses_[i].min = 1;  // none: above the maximum
      uses_[i].max = -1;
    }
  }
  for (const std::uint32_t column : columns) {
    if (column < space_.size() && space_.column(column).kind == ColumnSpace::Kind::kName) {
      space_.ForgetName(column);
    }
  }
}

void ColumnBook::Count(std::span<const double> features, ColumnShares* of_user) {
  ++decisions_;
  const std::size_t size = std::min(features.size(), uses_.size());
  std::size_t place = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double value = features[i];
    if (value == 0) continue;
    ColumnUse& use = uses_[i];
    const bool ranges = use.has_range();
    use.min = ranges ? std::min(use.min, value) : value;
    use.max = ranges ? std::max(use.max, value) : value;
    use.sum += value;
    use.squares += value * value;
    ++use.count;
    if (of_user == nullptr) continue;
    while (place < of_user->size() && (*of_user)[place].column < i) ++place;
    if (place == of_user->size() || (*of_user)[place].column != i) {
      of_user->insert(of_user->begin() + static_cast<std::ptrdiff_t>(place),
                      {.column = static_cast<std::uint32_t>(i)});
    }
    ColumnShare& share = (*of_user)[place];
    ++share.count;
    share.sum += value;
    share.squares += value * value;
  }
}

void ColumnBook::TakeBack(std::span<const ColumnShare> shares) {
  for (const ColumnShare& share : shares) {
    if (share.column >= uses_.size()) continue;
    ColumnUse& use = uses_[share.column];
    if (use.count <= share.count) {
      use = {};
      continue;
    }
    use.count -= share.count;
    use.sum -= share.sum;
    use.squares = std::max(0.0, use.squares - share.squares);
  }
}

void ColumnBook::ForgetNames(std::span<const std::uint32_t> columns) {
  for (const std::uint32_t column : columns) space_.ForgetName(column);
}

ColumnBook ColumnBook::WithoutUses() const {
  ColumnBook book;
  book.space_ = space_;
  book.uses_.resize(uses_.size());
  return book;
}

void ColumnBook::Add(std::span<const ColumnShare> shares, std::uint64_t decisions) {
  decisions_ += decisions;
  for (const ColumnShare& share : shares) {
    if (share.column >= uses_.size()) continue;
    ColumnUse& use = uses_[share.column];
    use.count += share.count;
    use.sum += share.sum;
    use.squares += share.squares;
  }
}

void ColumnBook::TakeRangesOf(const ColumnBook& whole) {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].count == 0) continue;
    uses_[i].min = whole.uses_[i].min;
    uses_[i].max = whole.uses_[i].max;
  }
}

void ColumnBook::Subtract(const ColumnBook& part) {
  decisions_ -= std::min(part.decisions_, decisions_);
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    ColumnUse& use = uses_[i];
    const ColumnUse& less = part.uses_[i];
    if (use.count <= less.count) {
      use = {};
      continue;
    }
    use.count -= less.count;
    use.sum -= less.sum;
    use.squares = std::max(0.0, use.squares - less.squares);
  }
}

Status ColumnBook::Add(const ColumnBook& other) {
  const std::vector<ColumnSpace::Addition> theirs = other.space_.Additions();
  const std::vector<ColumnSpace::Addition> ours = space_.Additions();
  if (theirs.size() > ours.size() || !std::equal(theirs.begin(), theirs.end(), ours.begin())) {
    return Status::Corruption("partitions have different columns");
  }
  decisions_ += other.decisions_;
  for (std::size_t i = 0; i < other.uses_.size(); ++i) {
    ColumnUse& use = uses_[i];
    const ColumnUse& more = other.uses_[i];
    if (more.count == 0) continue;
    // A range that is not known of one is not known of both.
    const bool ranges = use.count == 0 ? more.has_range() : use.has_range() && more.has_range();
    use.min = use.count == 0 ? more.min : std::min(use.min, more.min);
    use.max = use.count == 0 ? more.max : std::max(use.max, more.max);
    if (!ranges) {
      use.min = 1;
      use.max = -1;
    }
    use.count += more.count;
    use.sum += more.sum;
    use.squares += more.squares;
  }
  return {};
}

void ColumnBook::Save(ByteWriter& out) const {
  out.U64(decisions_);
  features::SaveAdditions(out, space_.Additions());
  for (const ColumnUse& use : uses_) {
    out.U64(use.count);
    for (const double value : {use.min, use.max, use.sum, use.squares}) out.Double(value);
  }
}

void ColumnBook::Load(ByteReader& in) {
  decisions_ = in.U64("number of decisions");
  space_ = {};
  for (const ColumnSpace::Addition& addition : features::LoadAdditions(in)) {
    if (const Status status = space_.Append(addition); !status.ok()) {
      in.Fail("columns", status.message());
    }
  }
  uses_.assign(space_.size(), {});
  for (ColumnUse& use : uses_) {
    use.count = in.U64("uses of a column");
    use.min = in.Double("least value of a column");
    use.max = in.Double("largest value of a column");
    use.sum = in.Double("sum of a column");
    use.squares = in.Double("squares of a column");
  }
}

}  // namespace codband::engine
