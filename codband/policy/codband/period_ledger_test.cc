#include "codband/policy/codband/period_ledger.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace codband {
namespace {

const std::vector<double> kLedgerX = {1, 2};
const std::vector<double> kLedgerY = {-1, 1};

struct CountingState final : DetectorState {
  std::size_t MemoryBytes() const override { return sizeof(*this); }
  void PeriodClosed() override { ++closed; }
  void Save(ByteWriter&) const override {}
  void Load(ByteReader&, const RecordLayout&) override {}

  int closed = 0;
};

class PeriodLedgerTest : public testing::Test {
 protected:
  static UserRecord NewUser() {
    return {.current = {.data = linalg::SufficientStats::OfColumns(false)},
            .detector = std::make_unique<CountingState>()};
  }

  void Observe(UserRecord& user, std::span<const double> x, double r) {
    user.current.Observe(x, r);
    pool_.Observe(user.current.model, x, r);
  }

  // Starts a period on a model, with one observation.
  void Live(PeriodLedger& ledger, UserRecord& user, ModelId model, double r) {
    ledger.Start(user, model);
    Observe(user, kLedgerX, r);
  }

  const PoolModel& Model(ModelId id) const { return pool_.model(pool_.IndexOf(id).value()); }

  ModelPool pool_{linalg::LinearPrior::Isotropic(2, 0.5, 0.25)};
  ItemEffects items_{true};
  PeriodLedger ledger_{pool_, items_, 1, false};
  UserRecord user_ = NewUser();
  UserRecord other_ = NewUser();
};

TEST_F(PeriodLedgerTest, MovingTakesTheObservationsAlongAndDropsAnEmptyModel) {
  const ModelId from = pool_.Create();
  Live(ledger_, user_, from, 3);
  const ModelId to = pool_.Create();
  Live(ledger_, other_, to, 1);
  ledger_.Move(user_, to);
  EXPECT_EQ(user_.current.model, to);
  EXPECT_EQ(pool_.IndexOf(from), std::nullopt);
  EXPECT_EQ(Model(to).periods, 2U);
  EXPECT_EQ(Model(to).users, 2U);
  EXPECT_EQ(Model(to).posterior.stats().m(), 2U);
  EXPECT_NEAR(Model(to).posterior.stats().q(), 10, 1e-12);
}

TEST_F(PeriodLedgerTest, ClosedPeriodStaysInItsModelAndIsNoLongerOfACurrentUser) {
  const ModelId model = pool_.Create();
  Live(ledger_, user_, model, 3);
  ledger_.Close(user_);
  EXPECT_FALSE(user_.has_period());
  EXPECT_EQ(user_.current.data.m(), 0U);
  EXPECT_EQ(user_.past.closed_count(), 1U);
  EXPECT_EQ(static_cast<const CountingState&>(*user_.detector).closed, 1);
  EXPECT_EQ(Model(model).periods, 1U);
  EXPECT_EQ(Model(model).users, 0U);
  EXPECT_EQ(Model(model).posterior.stats().m(), 1U);
}

TEST_F(PeriodLedgerTest, OnlyTheLastClosedPeriodsAreRemembered) {
  const ModelId first = pool_.Create();
  Live(ledger_, user_, first, 3);
  ledger_.Close(user_);
  const ModelId second = pool_.Create();
  Live(ledger_, user_, second, 1);
  ledger_.Close(user_);
  EXPECT_EQ(pool_.IndexOf(first), std::nullopt);  // taken out of the pool again
  EXPECT_EQ(Model(second).periods, 1U);
  EXPECT_EQ(user_.past.closed_count(), 2U);
}

TEST_F(PeriodLedgerTest, AllPeriodsAreRememberedWithoutALimit) {
  PeriodLedger all(pool_, items_, 0, false);
  const ModelId first = pool_.Create();
  Live(all, user_, first, 3);
  all.Close(user_);
  Live(all, user_, pool_.Create(), 1);
  all.Close(user_);
  EXPECT_EQ(pool_.size(), 2U);
  EXPECT_EQ(user_.past.models().size(), 2U);
}

TEST_F(PeriodLedgerTest, LateRewardGoesToTheModelOfItsPeriodIfThatIsRemembered) {
  const ModelId first = pool_.Create();
  Live(ledger_, user_, first, 3);
  ledger_.Close(user_);
  const ModelId second = pool_.Create();
  Live(ledger_, user_, second, 1);
  EXPECT_TRUE(ledger_.ObserveLate(user_, 0, kLedgerY, 2));
  EXPECT_EQ(Model(first).posterior.stats().m(), 2U);
  EXPECT_EQ(Model(second).posterior.stats().m(), 1U);
  EXPECT_EQ(user_.past.entries()[0].data.m(), 2U);
  ledger_.Close(user_);  // the first is no longer remembered
  EXPECT_FALSE(ledger_.ObserveLate(user_, 0, kLedgerY, 2));
  EXPECT_EQ(Model(second).posterior.stats().m(), 1U);
}

TEST_F(PeriodLedgerTest, ForgettingAUserLeavesThePoolAsOthersMadeIt) {
  PeriodLedger all(pool_, items_, 0, false);
  const ModelId shared = pool_.Create();
  Live(all, other_, shared, 2);
  const double before = Model(shared).posterior.mean()[0];
  for (const double r : {5.0, 6.0}) {
    Live(all, user_, shared, r);
    all.Close(user_);
  }
  Live(all, user_, shared, 7);
  ASSERT_EQ(Model(shared).periods, 4U);
  all.Forget(user_);
  EXPECT_EQ(Model(shared).periods, 1U);
  EXPECT_EQ(Model(shared).users, 1U);
  EXPECT_EQ(Model(shared).posterior.stats().m(), 1U);
  EXPECT_NEAR(Model(shared).posterior.mean()[0], before, 1e-9);
  all.Forget(other_);
  EXPECT_EQ(pool_.size(), 0U);
}

}  // namespace
}  // namespace codband
