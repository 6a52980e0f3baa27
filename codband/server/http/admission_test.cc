#include "codband/server/http/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace codband::server {
namespace {

using Verdict = Admission::Verdict;

std::optional<ClientNetwork> Network(const char* address) {
  return NetworkOf(boost::asio::ip::make_address(address));
}

TEST(ClientNetworkTest, IsAnAddressOrA64) {
  EXPECT_EQ(Network("192.0.2.1"), Network("192.0.2.1"));
  EXPECT_NE(Network("192.0.2.1"), Network("192.0.2.2"));
  EXPECT_EQ(Network("192.0.2.1"), Network("::ffff:192.0.2.1"));
  EXPECT_EQ(Network("2001:db8:1:2::1"), Network("2001:db8:1:2:ffff::9"));
  EXPECT_NE(Network("2001:db8:1:2::1"), Network("2001:db8:1:3::1"));
  for (const char* own : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_EQ(Network(own), std::nullopt) << own;
  }
}

TEST(AdmissionTest, CountsInAllAndByNetwork) {
  Admission admission(5, 2);
  std::vector<Admission::Place> places;
  const auto enter = [&](const char* address) {
    auto [place, verdict] = admission.Enter(Network(address));
    places.push_back(std::move(place));
    return verdict;
  };
  EXPECT_EQ(enter("192.0.2.1"), Verdict::kAdmitted);
  EXPECT_EQ(enter("192.0.2.1"), Verdict::kAdmitted);
  EXPECT_EQ(enter("192.0.2.1"), Verdict::kTooManyOfNetwork);
  places.pop_back();
  // This machine is not limited by itself, only in all.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(enter("127.0.0.1"), Verdict::kAdmitted);
  EXPECT_EQ(enter("192.0.2.2"), Verdict::kFull);
  EXPECT_EQ(admission.open(), 6U);
  places.pop_back();
  places[0].Release();
  places[0].Release();  // a second time changes nothing
  EXPECT_EQ(admission.open(), 4U);
  EXPECT_EQ(enter("192.0.2.1"), Verdict::kAdmitted);
  places.clear();
  EXPECT_EQ(admission.open(), 0U);
}

}  // namespace
}  // namespace codband::server
