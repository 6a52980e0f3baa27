#include "codband/policy/baselines/contributions.h"

#include <gtest/gtest.h>

#include <array>

namespace codband {
namespace {

constexpr std::array<double, 2> kX = {1, 2};

std::string Saved(const Contributions& contributions) {
  ByteWriter out;
  contributions.Save(out);
  return out.Take();
}

Status LoadFrom(const std::string& bytes) {
  Contributions contributions(2);
  ByteReader in(bytes);
  contributions.Load(in);
  in.ExpectEnd();
  return in.status();
}

TEST(ContributionsTest, HasOneEntryForEachModel) {
  Contributions contributions(2);
  contributions.Add(7, kX, 1);
  contributions.Add(3, kX, 1);
  contributions.Add(7, kX, 0);
  ASSERT_EQ(contributions.entries().size(), 2U);
  EXPECT_EQ(contributions.entries()[0].model, 7U);
  EXPECT_EQ(contributions.entries()[0].stats.m(), 2U);
  EXPECT_EQ(contributions.entries()[1].stats.m(), 1U);
}

TEST(ContributionsTest, LoadsWhatItSavedAndRefusesAReservedWordThatIsNotZero) {
  Contributions contributions(2);
  contributions.Add(7, kX, 1);
  std::string bytes = Saved(contributions);
  EXPECT_TRUE(LoadFrom(bytes).ok());
  constexpr std::size_t kReserved = 16;  // after the number of entries and the model
  ASSERT_EQ(bytes[kReserved], 0);
  bytes[kReserved] = 1;
  EXPECT_NE(LoadFrom(bytes).message().find("reserved word"), std::string::npos);
}

TEST(ContributionsTest, RefusesAModelThatAppearsTwice) {
  Contributions contributions(2);
  contributions.Add(7, kX, 1);
  contributions.Add(8, kX, 1);
  std::string bytes = Saved(contributions);
  const std::size_t second = 8 + (bytes.size() - 8) / 2;
  ASSERT_EQ(bytes[second], 8);
  bytes[second] = 7;
  EXPECT_NE(LoadFrom(bytes).message().find("appears twice"), std::string::npos);
}

}  // namespace
}  // namespace codband
