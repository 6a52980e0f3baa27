#include "codband/base/string_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <random>

namespace codband {
namespace {

using Secret = std::array<unsigned, XXH3_SECRET_DEFAULT_SIZE / sizeof(unsigned)>;

const Secret& SecretOfThisProcess() {
  static const Secret secret = [] {
    std::random_device device;
    Secret drawn;
    for (unsigned& word : drawn) word = device();
    return drawn;
  }();
  return secret;
}

}  // namespace

std::size_t StringHash::operator()(std::string_view text) const {
  const Secret& secret = SecretOfThisProcess();
  return XXH3_64bits_withSecret(text.data(), text.size(), secret.data(), sizeof(secret));
}

}  // namespace codband
