#include "codband/server/keys/key_failures.h"

#include <algorithm>

namespace codband::server {
namespace {

constexpr auto kForgiven = std::chrono::minutes(10);
constexpr auto kLongestWait = std::chrono::minutes(5);

ClientNetwork Site(const boost::asio::ip::address& address) {
  return NetworkOf(address).value_or(ClientNetwork{});
}

}  // namespace

KeyFailures::Clock::duration KeyFailures::Wait(const Address& address,
                                               Clock::time_point now) const {
  const auto found = entries_.find(Site(address));
  if (found == entries_.end()) return {};
  return std::max(found->second.until - now, Clock::duration::zero());
}

void KeyFailures::Note(const Address& address, std::uint64_t key, Clock::time_point now) {
  if (most_ == 0) return;
  const ClientNetwork site = Site(address);
  if (entries_.size() >= kMostAddresses && !entries_.contains(site)) {
    entries_.erase(std::ranges::min_element(entries_, {},
                                            [](const auto& entry) { return entry.second.last; }));
  }
  Entry& entry = entries_[site];
  if (now - entry.last > kForgiven) entry = {};
  entry.last = now;
  const auto known =
      entry.keys.begin() + static_cast<std::ptrdiff_t>(std::min(entry.failures, entry.keys.size()));
  if (std::find(entry.keys.begin(), known, key) != known) return;
  entry.keys.at(entry.failures % entry.keys.size()) = key;
  ++entry.failures;
  if (entry.failures < most_) return;
  const std::size_t doublings = std::min<std::size_t>(entry.failures - most_, 16);
  entry.until = now + std::min<Clock::duration>(std::chrono::seconds(1 << doublings), kLongestWait);
}

}  // namespace codband::server
