#pragma once

#include <optional>
#include <string_view>

namespace codband::server {

// "example.org:8080", the value of the header Host, in its parts. Borrows the text.
struct Authority {
  std::string_view host;  // with the brackets of an IPv6 address
  std::string_view port;  // digits; empty: the default of the scheme
};

// Nothing if the text is not a host (a name, an IPv4 address, an IPv6 address in brackets) with an
// optional port.
std::optional<Authority> ParseAuthority(std::string_view text);

// Whether the host is an address: 127.0.0.1 or [::1].
bool IsAddressLiteral(std::string_view host);

// ASCII letters of both cases are equal, as in names of hosts.
bool EqualNoCase(std::string_view a, std::string_view b);

// "http://example.org:8080" in its parts.
struct Origin {
  std::string_view scheme;
  Authority authority;
};
// Nothing if the text is not a scheme and an authority alone; "null" is none.
std::optional<Origin> ParseOrigin(std::string_view text);

}  // namespace codband::server
