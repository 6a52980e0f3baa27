#pragma once

// clang-format off: g++ 12 needs it before Asio.
#include <utility>
// clang-format on

#include <boost/asio/ip/address.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace codband::server {

// Whose connections are counted together: an IPv4 address, or a /64 of IPv6, which one client has
// to itself.
struct ClientNetwork {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const ClientNetwork&) const = default;
};
// Nothing for this machine itself, whose connections are only counted in all: a proxy on it stands
// for many clients.
std::optional<ClientNetwork> NetworkOf(const boost::asio::ip::address& address);

// Counts the connections of a server, in all and by network. Thread-safe.
class Admission {
 public:
  enum class Verdict { kAdmitted, kFull, kTooManyOfNetwork };

  // The count of one connection; given back at the end of its life, at the latest. Movable.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)), network_(other.network_) {}
    Place& operator=(Place&& other) noexcept {
      Release();
      admission_ = std::exchange(other.admission_, nullptr);
      network_ = other.network_;
      return *this;
    }
    ~Place() { Release(); }

    void Release();
    bool held() const { return admission_ != nullptr; }
    const std::optional<ClientNetwork>& network() const { return network_; }

   private:
    friend class Admission;
    Place(Admission* admission, std::optional<ClientNetwork> network)
        : admission_(admission), network_(network) {}

    Admission* admission_ = nullptr;
    std::optional<ClientNetwork> network_;
  };

  // Outlives its places.
  Admission(std::size_t most, std::size_t most_of_network)
      : most_(most), most_of_network_(most_of_network) {}

  // Takes a place, beyond the limits too: then the caller ends another connection or gives it back.
  std::pair<Place, Verdict> Enter(const std::optional<ClientNetwork>& network);

  std::size_t most() const { return most_; }
  std::size_t open() const;

 private:
  struct Hash {
    std::size_t operator()(const ClientNetwork& network) const {
      return static_cast<std::size_t>((network.high * 0x9E3779B97F4A7C15U) ^ network.low);
    }
  };
  void Leave(const std::optional<ClientNetwork>& network);

  const std::size_t most_;
  const std::size_t most_of_network_;
  mutable std::mutex mutex_;
  std::size_t open_ = 0;
  std::unordered_map<ClientNetwork, std::size_t, Hash> by_network_;
};

}  // namespace codband::server
