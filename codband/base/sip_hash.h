#pragma once

#include <cstdint>
#include <string_view>

namespace codband {

// A secret of 128 bits.
struct SipKey {
  std::uint64_t low = 0;   // the first eight bytes, little-endian
  std::uint64_t high = 0;  // the others

  friend bool operator==(const SipKey&, const SipKey&) = default;
};

// SipHash-2-4 (Aumasson & Bernstein, 2012): who does not know the key cannot find two texts with
// the same hash, nor a text with a given one, other than by chance.
std::uint64_t SipHash(const SipKey& key, std::string_view text);

}  // namespace codband
