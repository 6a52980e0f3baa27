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

void ColumnBook::Count(std::span<const double> features) {
  ++decisions_;
  const std::size_t size = std::min(features.size(), uses_.size());
  for (std::size_t i = 0; i < size; ++i) {
    const double value = features[i];
    if (value == 0) continue;
    ColumnUse& use = uses_[i];
    use.min = use.count == 0 ? value : std::min(use.min, value);
    use.max = use.count == 0 ? value : std::max(use.max, value);
    use.sum += value;
    use.squares += value * value;
    ++use.count;
  }
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
