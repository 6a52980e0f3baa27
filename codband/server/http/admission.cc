#include "codband/server/http/admission.h"

namespace codband::server {

std::optional<ClientNetwork> NetworkOf(const boost::asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return NetworkOf(boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()));
  }
  if (address.is_loopback()) return std::nullopt;
  if (address.is_v4()) return ClientNetwork{.high = 0, .low = address.to_v4().to_uint()};
  const auto bytes = address.to_v6().to_bytes();
  ClientNetwork network;
  for (std::size_t i = 0; i < 8; ++i) network.high = network.high << 8U | bytes[i];
  return network;
}

void Admission::Place::Release() {
  if (Admission* admission = std::exchange(admission_, nullptr)) admission->Leave(network_);
}

std::pair<Admission::Place, Admission::Verdict> Admission::Enter(
    const std::optional<ClientNetwork>& network) {
  const std::lock_guard lock(mutex_);
  Verdict verdict = Verdict::kAdmitted;
  // The map first: it may throw, and then nothing is counted.
  if (network && ++by_network_[*network] > most_of_network_) verdict = Verdict::kTooManyOfNetwork;
  if (++open_ > most_ && verdict == Verdict::kAdmitted) verdict = Verdict::kFull;
  return {Place(this, network), verdict};
}

void Admission::Leave(const std::optional<ClientNetwork>& network) {
  const std::lock_guard lock(mutex_);
  --open_;
  if (!network) return;
  const auto found = by_network_.find(*network);
  if (--found->second == 0) by_network_.erase(found);
}

std::size_t Admission::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

}  // namespace codband::server
