#include "codband/policy/baselines/contributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace codband {

Contributions::Entry& Contributions::EntryFor(ModelId model) {
  const auto found = std::ranges::find(entries_, model, &Entry::model);
  if (found != entries_.end()) return *found;
  return entries_.emplace_back(Entry{.model = model, .stats = linalg::SufficientStats(dim_)});
}

void Contributions::Add(ModelId model, std::span<const double> x, double r) {
  EntryFor(model).stats.Add(x, r);
}

void Contributions::Grow(std::size_t dim) {
  dim_ = dim;
  for (Entry& entry : entries_) entry.stats.Grow(dim, false);
}

void Contributions::Save(ByteWriter& out) const {
  out.U64(entries_.size());
  for (const Entry& entry : entries_) {
    out.U64(entry.model);
    out.U64(0);  // reserved by the format
    entry.stats.Save(out);
  }
}

void Contributions::Load(ByteReader& in) {
  const std::size_t count =
      in.Count("number of contributions", linalg::SufficientStats::SavedBytes(dim_));
  entries_.clear();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Entry& entry = entries_.emplace_back(Entry{0, linalg::SufficientStats(dim_)});
    entry.model = in.U64("model of a contribution");
    if (std::ranges::count(entries_, entry.model, &Entry::model) > 1) {
      in.Fail("model of a contribution", "appears twice");
    }
    if (const std::uint64_t reserved = in.U64("reserved word"); reserved != 0) {
      in.Fail("reserved word", fmt::format("is {}, expected 0", reserved));
    }
    entry.stats.Load(in);
  }
}

}  // namespace codband
