#include "codband/server/config/listen_address.h"

#include <fmt/format.h>

#include "codband/base/parse.h"

namespace codband::server {

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const Status wrong = Status::InvalidArgument(
      fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text));
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong;
  std::string_view host = text.substr(0, colon);
  const auto port = ParseNumber<std::uint16_t>(text.substr(colon + 1));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return wrong;  // IPv6 needs brackets: ::1:8080 is an address itself
  }
  if (host.empty() || !port) return wrong;
  return ListenAddress{.host = std::string(host), .port = *port};
}

std::string FormatListenAddress(const ListenAddress& address) {
  return address.host.find(':') == std::string::npos
             ? fmt::format("{}:{}", address.host, address.port)
             : fmt::format("[{}]:{}", address.host, address.port);
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace codband::server
