#include "codband/base/sip_hash.h"

#include <bit>
#include <cstddef>

namespace codband {
namespace {

struct State {
  std::uint64_t a, b, c, d;

  void Round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void Add(std::uint64_t word) {
    d ^= word;
    Round();
    Round();
    a ^= word;
  }
};

// Little-endian, of at most eight bytes.
std::uint64_t WordOf(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::uint64_t SipHash(const SipKey& key, std::string_view text) {
  State state{.a = key.low ^ 0x736f6d6570736575,
              .b = key.high ^ 0x646f72616e646f6d,
              .c = key.low ^ 0x6c7967656e657261,
              .d = key.high ^ 0x7465646279746573};
  const std::uint64_t length = std::uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) state.Add(WordOf(text.substr(0, 8)));
  state.Add(length | WordOf(text));
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace codband
