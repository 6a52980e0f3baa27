#include "codband/policy/codband/user_record.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband {

std::uint64_t UserRecord::observations() const {
  std::uint64_t sum = current.data.m();
  for (const PastPeriods::Entry& entry : past.entries()) sum += entry.data.m();
  return sum;
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

void UserRecord::Save(ByteWriter& out) const {
  current.Save(out);
  detector->SaveBesidePeriod(current, out);
  past.Save(out);
  detector->Save(out);
  departure_evidence.Save(out);
  out.U32(next_review);
  out.U32(other_rewards);
}

void UserRecord::Load(ByteReader& in) {
  current.Load(in);
  detector->LoadBesidePeriod(current, in);
  past.Load(in, current.data.dim());
  detector->Load(in);
  departure_evidence.Load(in);
  next_review = in.U32("next review");
  other_rewards = in.U32("rewards other than 0 and 1");
}

}  // namespace codband
