#include "codband/policy/codband/period_ledger.h"

namespace codband {

PeriodLedger::PeriodLedger(ModelPool& pool, ItemEffects& items, std::size_t history, bool intercept)
    : pool_(pool),
      items_(items),
      history_(history),
      sums_(linalg::SufficientStats::OfColumns(intercept)),
      rounded_(sums_) {}

void PeriodLedger::Start(UserRecord& user, ModelId model) {
  Rename(user, model);
  pool_.AddPeriods(model, 1, user.current.data);  // no data yet: this counts the period
}

void PeriodLedger::Move(UserRecord& user, ModelId to) {
  const Period& period = user.current;
  const ModelId from = period.model;
  pool_.AddPeriods(to, 1, period.data);
  pool_.AddRecency(to, period.recency_mass());
  if (pool_.model(pool_.IndexOf(from).value()).periods > 1) {
    pool_.RemoveRecency(from, period.recency_mass());
  }
  Rename(user, to);
  if (user.items != nullptr) items_.Move(*user.items, from, to);
  pool_.RemovePeriods(from, 1, period.data);
}

void PeriodLedger::Rename(UserRecord& user, ModelId model) {
  if (user.has_period()) pool_.CountUser(user.current.model, -1);
  user.current.model = model;
  if (user.has_period()) pool_.CountUser(model, 1);
}

// `sums_` are from now on the closed observations on `model`: rounded in the record, and the model
// corrected by what that changed.
void PeriodLedger::StoreRounded(UserRecord& user, ModelId model) {
  rounded_ = sums_;
  rounded_.RoundToFloat();
  user.past.Store(model, rounded_);
  pool_.Correct(model, sums_, rounded_);
}

void PeriodLedger::TakeOutItems(UserRecord& user, std::size_t showings) {
  if (user.items != nullptr) items_.TakeOutSince(*user.items, showings);
}

void PeriodLedger::Close(UserRecord& user) {
  // First, so that a user never holds more than is remembered.
  if (history_ > 0 && user.past.models().size() >= history_) ForgetOldest(user);
  Period& period = user.current;
  const ModelId model = period.model;
  user.past.Read(model, sums_);
  sums_.Add(period.data);
  StoreRounded(user, model);
  if (period.recency != nullptr) {
    user.past.AddRecency(model, pool_.clock(), *period.recency);
  }
  user.past.Close(model);
  period.Clear();
  user.detector->PeriodClosed();
  Rename(user, kNoModel);
}

// Where a later period was on the same model, its sums include the older one's and stay; n_k no
// longer counts it.
void PeriodLedger::ForgetOldest(UserRecord& user) {
  const ModelId model = user.past.models().front();
  user.past.DropOldest();
  if (user.past.PeriodsOn(model) > 0) {
    sums_.Clear();
    pool_.RemovePeriods(model, 1, sums_);
    return;
  }
  user.past.Read(model, sums_);
  pool_.RemoveRecency(model, user.past.RecencyOf(model));
  user.past.Erase(model);
  pool_.RemovePeriods(model, 1, sums_);
}

bool PeriodLedger::ObserveLate(UserRecord& user, std::uint32_t period, std::span<const double> x,
                               double r) {
  const ModelId model = user.past.ModelOf(period);
  if (model == kNoModel) return false;
  pool_.Observe(model, x, r);
  user.past.Read(model, sums_);
  sums_.Add(x, r);
  StoreRounded(user, model);
  return true;
}

void PeriodLedger::Forget(const UserRecord& user) {
  const Period& period = user.current;
  if (user.has_period()) {
    pool_.RemoveRecency(period.model, period.recency_mass());
    pool_.CountUser(period.model, -1);
    pool_.RemovePeriods(period.model, 1, period.data);
  }
  for (const PastPeriods::Entry& entry : user.past.entries()) {
    entry.data.Read(sums_);
    pool_.RemoveRecency(entry.model, entry.recency_mass());
    pool_.RemovePeriods(entry.model, user.past.PeriodsOn(entry.model), sums_);
  }
}

}  // namespace codband
