#pragma once

// clang-format off: g++ 12 needs it before Asio.
#include <utility>
// clang-format on

#include <array>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "codband/server/http/admission.h"

namespace codband::server {

// Wrong keys by the address they came from. From the `most`-th on, further keys of that address are
// not looked at for a while: a second, then two, four, up to five minutes. Ten quiet minutes
// forgive everything. A right key forgives nothing: somebody with a key of their own could go on
// guessing others.
//
// The same wrong key again is not a guess but a client that has not been told of a new key: it
// counts once. Addresses count by their network (ClientNetwork), those of this machine together. At
// most kMostAddresses are remembered; those that were quiet for longest are forgotten first. Not
// thread-safe.
class KeyFailures {
 public:
  using Clock = std::chrono::steady_clock;
  using Address = boost::asio::ip::address;
  static constexpr std::size_t kMostAddresses = 4096;

  // `most` 0: never refuses.
  explicit KeyFailures(std::size_t most) : most_(most) {}

  // How long the address has to wait from now on; zero: not at all.
  Clock::duration Wait(const Address& address, Clock::time_point now) const;
  // A wrong key came; `key` is a number that stands for it.
  void Note(const Address& address, std::uint64_t key, Clock::time_point now);

 private:
  struct Entry {
    std::size_t failures = 0;
    Clock::time_point last = {};
    Clock::time_point until = {};            // no key is looked at before
    std::array<std::uint64_t, 4> keys = {};  // the latest, in a ring
  };

  const std::size_t most_;
  std::map<ClientNetwork, Entry> entries_;
};

}  // namespace codband::server
