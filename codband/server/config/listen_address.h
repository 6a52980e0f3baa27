#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace codband::server {

// "0.0.0.0:8080", "[::1]:8080", "localhost:0".
struct ListenAddress {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 0;
};
Result<ListenAddress> ParseListenAddress(std::string_view text);
std::string FormatListenAddress(const ListenAddress& address);

// Whether only this machine can reach the host.
bool IsLoopback(std::string_view host);

}  // namespace codband::server
