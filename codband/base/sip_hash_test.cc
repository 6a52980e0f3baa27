#include "codband/base/sip_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace codband {
namespace {

// The published vectors: key 00 01 … 0f, texts 00 01 02 … of growing length.
TEST(SipHashTest, AgreesWithThePublishedVectors) {
  const SipKey key{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};
  const std::uint64_t expected[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a,
                                    0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
                                    0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462};
  std::string text;
  for (const std::uint64_t hash : expected) {
    EXPECT_EQ(SipHash(key, text), hash) << text.size();
    text.push_back(static_cast<char>(text.size()));
  }
  while (text.size() < 15) text.push_back(static_cast<char>(text.size()));
  EXPECT_EQ(SipHash(key, text), 0xa129ca6149be45e5);  // the example of the paper
}

TEST(SipHashTest, DependsOnEveryPartOfTheKey) {
  EXPECT_NE(SipHash({.low = 1}, "ann"), SipHash({}, "ann"));
  EXPECT_NE(SipHash({.high = 1}, "ann"), SipHash({}, "ann"));
}

}  // namespace
}  // namespace codband
