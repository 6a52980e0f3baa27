#include "codband/server/config/http_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codband/server/http/request_guard.h"

namespace codband::server {
namespace {

// "a, b" in its parts; blanks around them do not matter.
std::vector<std::string> SplitList(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    part.remove_prefix(std::min(part.find_first_not_of(kBlanks), part.size()));
    part = part.substr(0, part.find_last_not_of(kBlanks) + 1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

template <auto Member>
ConfigValue GetList(const ServeConfig& config) {
  return fmt::format("{}", fmt::join(config.server.*Member, ", "));
}
template <auto Member, auto Validate>
Status SetList(ServeConfig& config, const ConfigValue& value) {
  std::vector<std::string> parts = SplitList(std::get<std::string>(value));
  for (const std::string& part : parts) CODBAND_RETURN_IF_ERROR(Validate(part));
  config.server.*Member = std::move(parts);
  return {};
}

template <auto Member>
ConfigValue GetFile(const ServeConfig& config) {
  return (config.server.tls.*Member).string();
}
template <auto Member>
Status SetFile(ServeConfig& config, const ConfigValue& value) {
  config.server.tls.*Member = std::get<std::string>(value);
  return {};
}

}  // namespace

std::vector<ConfigKey> HttpKeys() {
  return {
      {.section = "http",
       .name = "max_connections_per_address",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1'000'000,
       .help =
           "Connections open at a time from one IPv4 address or IPv6 /64, but for this machine.\n"
           "For one more its own idlest is closed, or it is refused with 503. Set it to\n"
           "server.max_connections if a proxy on another machine stands for all clients.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return static_cast<std::int64_t>(config.server.max_connections_per_address);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.server.max_connections_per_address =
             static_cast<std::size_t>(std::get<std::int64_t>(value));
         return {};
       }},
      {.section = "http",
       .name = "allowed_hosts",
       .expected = "names of hosts, separated by commas, such as rec.example.org, *.internal",
       .help = "Names of this server, as requests have them in the header Host. Addresses and\n"
               "localhost are always allowed. Other names are refused with 421, for an attacker\n"
               "can point a name of theirs at this machine (DNS rebinding). *: any name.",
       .get = GetList<&ServerOptions::allowed_hosts>,
       .set = SetList<&ServerOptions::allowed_hosts, &ValidateAllowedHost>},
      {.section = "http",
       .name = "allowed_origins",
       .expected = "origins, separated by commas, such as https://shop.example.org",
       .help = "Other sites whose pages may use this server from a browser (CORS). Without them\n"
               "only pages of this server may; others are refused with 403.",
       .get = GetList<&ServerOptions::allowed_origins>,
       .set = SetList<&ServerOptions::allowed_origins, &ValidateAllowedOrigin>},
      {.section = "tls",
       .name = "certificate",
       .expected = "a file in PEM",
       .help = "The server's certificate, followed by those that lead to a root. With it and the\n"
               "key the server speaks HTTPS only. SIGHUP reads both again. Empty: plain HTTP.",
       .get = GetFile<&TlsFiles::certificate>,
       .set = SetFile<&TlsFiles::certificate>},
      {.section = "tls",
       .name = "key",
       .expected = "a file in PEM",
       .help = "The key of the certificate, without a password. Only the server's user should be\n"
               "able to read it.",
       .get = GetFile<&TlsFiles::key>,
       .set = SetFile<&TlsFiles::key>},
  };
}

}  // namespace codband::server
