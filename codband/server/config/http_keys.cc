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

}  // namespace

std::vector<ConfigKey> HttpKeys() {
  return {
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
  };
}

}  // namespace codband::server
