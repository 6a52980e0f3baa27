#include "codband/policy/codband/user_record.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband {
namespace {

// Records begin with it since format 5, with the number of features behind it. Older ones begin
// with the id of a model, of which there are not so many.
constexpr std::uint64_t kRecordColumns = 0xffff'c0db'ffff'c0db;

}  // namespace

std::uint64_t UserRecord::observations() const {
  std::uint64_t sum = current.data.m();
  for (const PastPeriods::Entry& entry : past.entries()) sum += entry.data.m();
  return sum;
}

void UserRecord::Translate(const ModelAliases& aliases) {
  if (aliases.empty()) return;
  if (has_period()) current.model = aliases.Resolve(current.model);
  detector->Translate(aliases, current);
}

void UserRecord::Rename(const ModelAliases& aliases) {
  Translate(aliases);
  past.Rename(aliases, current.data.columns().intercept());
  if (items == nullptr) return;
  for (ItemHistory::Entry& entry : items->entries()) entry.model = aliases.Resolve(entry.model);
}

std::size_t UserRecord::HeapBytes() const {
  return current.HeapBytes() + past.HeapBytes() + detector->MemoryBytes() +
         (items == nullptr ? 0 : sizeof(*items) + kHeapBlock + items->HeapBytes());
}

std::string UserRecord::Fault() const {
  const std::uint64_t m = current.data.m();
  if (has_period() == (m == 0)) return fmt::format("the current period has {} observations", m);
  if (std::string fault = detector->Fault(current); !fault.empty()) return fault;
  for (const PastPeriods::Entry& entry : past.entries()) {
    if (past.PeriodsOn(entry.model) == 0) {
      return fmt::format("closed periods on model {} do not add up", entry.model);
    }
  }
  for (const ModelId model : past.models()) {
    if (std::ranges::find(past.entries(), model, &PastPeriods::Entry::model) ==
        past.entries().end()) {
      return "closed periods lack their observations";
    }
  }
  return {};
}

void UserRecord::Grow(std::size_t dim) {
  const bool intercept = current.data.columns().intercept();
  if (current.recent != nullptr) current.recent->Grow(dim, intercept);
  detector->Grow(dim, intercept);
}

void UserRecord::Save(ByteWriter& out) const {
  out.U64(kRecordColumns);
  out.U32(static_cast<std::uint32_t>(detector->dim()));
  current.Save(out);
  detector->SaveBesidePeriod(current, out);
  past.Save(out);
  detector->Save(out);
  departure_evidence.Save(out);
  out.U32(next_review);
  out.U32(other_rewards);
}

void UserRecord::Load(ByteReader& in, std::size_t dim_before_columns, std::size_t dim) {
  RecordLayout layout{.dim = dim_before_columns, .columns = in.Skip(kRecordColumns), .widest = dim};
  if (layout.columns) layout.dim = in.U32("features of a record");
  if (layout.dim > dim) {
    in.Fail("features of a record",
            fmt::format("are {}, expected at most {} with an intercept", layout.dim, dim));
    return;
  }
  current.Load(in, layout);
  detector->LoadBesidePeriod(current, in, layout);
  past.Load(in, layout, current.data.columns().intercept());
  detector->Load(in, layout);
  departure_evidence.Load(in);
  next_review = in.U32("next review");
  other_rewards = in.U32("rewards other than 0 and 1");
}

void UserRecord::SaveRest(ByteWriter& out) const {
  if (!has_rest()) return;
  items->Save(out);
  detector->SaveRest(out);
}

void UserRecord::LoadRest(ByteReader& in) {
  items = std::make_unique<ItemHistory>();
  items->Load(in);
  detector->LoadRest(in);
}

}  // namespace codband
