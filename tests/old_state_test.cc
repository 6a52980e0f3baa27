// States that earlier formats wrote: tests/states holds what each wrote after 330 steps of the
// world below, and as text what was in it. They are read as they were meant, go on, grow and are
// forgotten.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "codband/base/file.h"
#include "codband/policy/state_file.h"
#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace codband {
namespace {

// What is in a state, whatever a policy makes of it.
std::string Describe(const Policy& policy) {
  std::string out;
  for (const ModelDescription& model : policy.DescribeModels()) {
    out += fmt::format("model {} periods {} users {} observations {} intercept {:.6f} theta",
                       model.id, model.periods, model.users, model.observations, model.intercept);
    for (const double value : model.theta) out += fmt::format(" {:.6f}", value);
    out += "\n";
  }
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    const UserDescription described = policy.DescribeUser(user).value();
    out += fmt::format("user {} model {} chance {:.4f} observations {}\n", user, described.model,
                       described.chance, described.observations);
  }
  return out;
}

class OldStateTest : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const std::string& spec() const { return std::get<0>(GetParam()); }
  std::string Contents(std::string_view ending) const {
    const auto bytes =
        ReadFile(fmt::format("{}/tests/states/{}.format{}{}", CODBAND_SOURCE_DIR,
                             SpecAsName(spec(), '-'), std::get<1>(GetParam()), ending));
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? bytes.value() : "";
  }
};

TEST_P(OldStateTest, IsReadAsItWasMeant) {
  const TestWorld world(41);
  const auto old = DecodeState(Contents(""), world.context());
  ASSERT_TRUE(old.ok()) << old.status().ToString();
  EXPECT_EQ(Describe(*old.value()), Contents(".txt"));
}

TEST_P(OldStateTest, GoesOnGrowsAndIsForgotten) {
  TestWorld world(41);
  world.set_step(330);
  const auto old = std::move(DecodeState(Contents(""), world.context())).value();
  // Written again it is a state of today.
  const auto again = std::move(DecodeState(EncodeState(*old), world.context())).value();
  TestWorld same = world;
  for (int i = 0; i < 330; ++i) {
    ASSERT_EQ(world.Step(*old).after, same.Step(*again).after) << i;
  }
  EXPECT_TRUE(EncodeState(*old) == EncodeState(*again));
  old->Grow(TestWorld::kDim + 3);
  const auto grown = DecodeState(EncodeState(*old), world.context());
  ASSERT_TRUE(grown.ok()) << grown.status().ToString();
  for (UserId user = 0; user < TestWorld::kUsers; ++user) {
    EXPECT_TRUE(grown.value()->Forget(user)) << user;
  }
  EXPECT_EQ(grown.value()->model_count(), 0U);
}

// As a server continues from it: its spec does not name what was not there yet.
TEST_P(OldStateTest, ParametersThatCameLaterMayBeMissing) {
  const TestWorld world(41);
  const auto old = DecodeState(Contents(""), world.context());
  ASSERT_TRUE(old.ok()) << old.status().ToString();
  std::string written = old.value()->spec();
  for (const std::string_view later : {",items=", ",lengths="}) {
    const std::size_t at = written.find(later);
    ASSERT_NE(at, std::string::npos) << later;
    written.erase(at, written.find(',', at + 1) - at);
  }
  const Status same = CheckSpecChange(written, spec(), world.context());
  EXPECT_TRUE(same.ok()) << same.ToString();
}

INSTANTIATE_TEST_SUITE_P(Formats, OldStateTest,
                         testing::Combine(testing::Values("codband", "codband:paper-product"),
                                          testing::Values(4, 5)),
                         [](const testing::TestParamInfo<std::tuple<std::string, int>>& param) {
                           return fmt::format("{}_format{}",
                                              SpecAsName(std::get<0>(param.param), '_'),
                                              std::get<1>(param.param));
                         });

}  // namespace
}  // namespace codband
