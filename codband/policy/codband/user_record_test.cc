#include "codband/policy/codband/user_record.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codband/policy/codband/bayes_detector.h"
#include "codband/policy/codband/window_detector.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/test_support.h"

namespace codband {
namespace {

constexpr std::size_t kFeatures = TestWorld::kDim;

// The record of user 1 after 30 visits of each user.
std::string RecordOf(const std::string& spec) {
  TestWorld world(2);
  const auto policy = MakeOrDie(spec, world.context());
  for (std::size_t i = 0; i < 30 * TestWorld::kUsers; ++i) world.Step(*policy);
  std::string record;
  policy->paged_users()->SaveChangedUsers([&](UserId user, std::string bytes) {
    if (user == 1) record = std::move(bytes);
  });
  return record;
}

RecordLayout ReadLayout(ByteReader& in) {
  EXPECT_TRUE(in.Skip(0xffff'c0db'ffff'c0db));
  return {.dim = in.U32("features"), .columns = true};
}

void ReadPeriod(ByteReader& in, std::size_t dim) {
  in.U64("model");
  auto data = linalg::SufficientStats::OfColumns(dim > kFeatures);
  data.Load(in);
  EXPECT_EQ(data.m(), 30U);
  EXPECT_EQ(data.dim(), dim);
  Recency().Load(in);
}

void ReadPast(ByteReader& in, const RecordLayout& layout, bool intercept) {
  PastPeriods past;
  past.Load(in, layout, intercept);
  EXPECT_EQ(past.closed_count(), 0U);
}

void ReadEnd(ByteReader& in, bool reviewed) {
  DepartureEvidence().Load(in);
  EXPECT_EQ(in.U32("next review") > 0, reviewed);
  EXPECT_EQ(in.U32("other rewards"), 30U);
  in.ExpectEnd();
  EXPECT_TRUE(in.ok()) << in.status().ToString();
}

// State format 5, section by section: data directories written before must open.
TEST(UserRecordTest, DefaultHasTheFilterAfterThePastPeriods) {
  const std::string record = RecordOf("codband");
  ByteReader in(record);
  const RecordLayout layout = ReadLayout(in);
  EXPECT_EQ(layout.dim, 0U);  // all of it is over columns
  ReadPeriod(in, kFeatures + 1);
  ReadPast(in, layout, true);
  ChangeWindow window(true, 8);
  window.Load(in, layout);
  EXPECT_EQ(window.size(), 8U);
  Belief belief;
  belief.Load(in);
  EXPECT_GT(belief.size(), 0U);
  Trial().Load(in);
  ReadEnd(in, true);
}

TEST(UserRecordTest, PresetsHaveTheWindowTestBesideThePeriodAndAnEmptyFilter) {
  for (const auto& [spec, memory, flags] :
       {std::tuple{"codband:paper", 0U, 20U}, std::tuple{"codband:paper-product,memory=7", 7U, 20U},
        std::tuple{"codband:paper-product,memory=7,detector=none", 7U, 0U}}) {
    SCOPED_TRACE(spec);
    const std::string record = RecordOf(spec);
    ByteReader in(record);
    const RecordLayout layout = ReadLayout(in);
    ReadPeriod(in, kFeatures);
    linalg::GaussianPosterior own(kFeatures, 0.1, 1);
    own.Load(in);
    EXPECT_EQ(own.stats().m(), 30U);
    RecentObservations recent(kFeatures, memory);
    recent.Load(in);
    EXPECT_EQ(recent.size(), memory);
    FlagWindow badness(20);
    badness.Load(in);
    EXPECT_EQ(badness.size(), flags);
    EXPECT_EQ(layout.dim, kFeatures);
    ReadPast(in, layout, false);
    ChangeWindow(false, 0).Load(in, layout);
    Belief belief;
    belief.Load(in);
    EXPECT_EQ(belief.size(), 0U);
    Trial trial;
    trial.Load(in);
    EXPECT_EQ(trial.old_model, kNoModel);
    ReadEnd(in, false);
  }
}

TEST(UserRecordTest, RecordThatDoesNotFitTogetherIsAFault) {
  const auto new_user = [] {
    return UserRecord{.current = {.data = linalg::SufficientStats::OfColumns(false)},
                      .detector = std::make_unique<FilterState>(false, 3)};
  };
  const std::vector<double> x = {1, 2};
  UserRecord user = new_user();
  EXPECT_EQ(user.Fault(), "");
  user.current.model = 4;
  EXPECT_EQ(user.Fault(), "the current period has 0 observations");
  user.current.Observe(x, 1);
  EXPECT_EQ(user.Fault(), "");
  for (int i = 0; i < 2; ++i) FilterState::Of(user).window.Push(x, 1, 0);
  EXPECT_EQ(user.Fault(), "the window has 2 observations, the period 1");
  user = new_user();
  user.past.Close(3);
  EXPECT_EQ(user.Fault(), "closed periods lack their observations");
  user.past.Store(3, linalg::SufficientStats::OfColumns(false));
  EXPECT_EQ(user.Fault(), "");
  user.past.Store(5, linalg::SufficientStats::OfColumns(false));
  EXPECT_EQ(user.Fault(), "closed periods on model 5 do not add up");
}

}  // namespace
}  // namespace codband
