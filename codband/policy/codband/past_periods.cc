#include "codband/policy/codband/past_periods.h"

#include <algorithm>
#include <utility>

#include "codband/base/check.h"

namespace codband {

std::uint64_t PastPeriods::PeriodsOn(ModelId model) const {
  return static_cast<std::uint64_t>(std::ranges::count(models_, model));
}

ModelId PastPeriods::ModelOf(std::uint32_t period) const {
  return period < forgotten_ ? kNoModel : models_[period - forgotten_];
}

void PastPeriods::DropOldest() {
  CODBAND_CHECK(!models_.empty());
  models_.erase(models_.begin());
  ++forgotten_;
}

void PastPeriods::Read(ModelId model, linalg::SufficientStats& out) const {
  const auto found = std::ranges::find(entries_, model, &Entry::model);
  if (found == entries_.end()) {
    out.Clear();
  } else {
    found->data.Read(out);
  }
}

void PastPeriods::Store(ModelId model, const linalg::SufficientStats& data) {
  auto found = std::ranges::find(entries_, model, &Entry::model);
  if (found == entries_.end()) {
    entries_.push_back({.model = model, .data = linalg::CompactStats(data.columns().intercept())});
    found = entries_.end() - 1;
  }
  found->data.Store(data);
}

PastPeriods::Entry& PastPeriods::EntryOf(ModelId model) {
  const auto found = std::ranges::find(entries_, model, &Entry::model);
  CODBAND_CHECK(found != entries_.end());
  return *found;
}

const Recency& PastPeriods::RecencyOf(ModelId model) const {
  return const_cast<PastPeriods*>(this)->EntryOf(model).recency_mass();
}

void PastPeriods::AddRecency(ModelId model, const RecencyClock& clock, const Recency& recency) {
  Entry& entry = EntryOf(model);
  if (entry.recency == nullptr) entry.recency = std::make_unique<Recency>();
  entry.recency->Add(clock, recency);
}

void PastPeriods::Erase(ModelId model) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.model == model; });
}

void PastPeriods::Rename(const ModelAliases& aliases, bool intercept) {
  for (ModelId& model : models_) model = aliases.Resolve(model);
  for (Entry& entry : std::exchange(entries_, {})) {
    entry.model = aliases.Resolve(entry.model);
    const auto same = std::ranges::find(entries_, entry.model, &Entry::model);
    if (same == entries_.end()) {
      entries_.push_back(std::move(entry));
      continue;
    }
    auto sums = linalg::SufficientStats::OfColumns(intercept);
    auto more = sums;
    same->data.Read(sums);
    entry.data.Read(more);
    sums.Add(more);
    sums.RoundToFloat();
    same->data.Store(sums);
  }
}

std::size_t PastPeriods::HeapBytes() const {
  std::size_t bytes = codband::HeapBytes(models_) + codband::HeapBytes(entries_);
  for (const Entry& entry : entries_) {
    bytes += entry.data.HeapBytes();
    if (entry.recency != nullptr) bytes += sizeof(Recency) + kHeapBlock;
  }
  return bytes;
}

void PastPeriods::Save(ByteWriter& out) const {
  out.U32(forgotten_);
  out.U64(models_.size());
  for (const ModelId model : models_) out.U64(model);
  out.U64(entries_.size());
  for (const Entry& entry : entries_) {
    out.U64(entry.model);
    entry.data.Save(out);
    entry.recency_mass().Save(out);
  }
}

void PastPeriods::Load(ByteReader& in, const RecordLayout& layout, bool intercept) {
  forgotten_ = in.U32("forgotten periods");
  models_.resize(in.Count("closed periods", sizeof(ModelId)));
  for (ModelId& model : models_) model = in.U64("model of a closed period");
  const std::size_t count = in.Count("number of past models", sizeof(ModelId));
  entries_.clear();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Entry entry{.model = in.U64("past model"), .data = linalg::CompactStats(intercept)};
    if (layout.columns) {
      entry.data.Load(in, layout.widest);
    } else {
      entry.data.LoadAll(in, layout.dim);
    }
    Recency recency;
    recency.Load(in);
    if (!recency.empty()) entry.recency = std::make_unique<Recency>(recency);
    if (std::ranges::find(entries_, entry.model, &Entry::model) != entries_.end()) {
      in.Fail("past model", "appears twice");
    }
    entries_.push_back(std::move(entry));
  }
}

}  // namespace codband
