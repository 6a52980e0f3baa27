#include "codband/server/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "codband/base/file.h"
#include "codband/base/lines.h"
#include "codband/base/parse.h"
#include "codband/base/text.h"
#include "codband/server/config/config_keys.h"
#include "codband/server/config/listen_address.h"
#include "codband/server/keys/key_gate.h"

namespace codband::server {
namespace {

constexpr std::string_view kPrefix = "CODBAND_";
constexpr std::string_view kApiKeyVariable = "CODBAND_API_KEY";
// Neither settings nor mistakes: the key itself, a switch of our tests, and the variables that
// Kubernetes gives to every container next to a service called codband.
constexpr std::string_view kOtherVariables[] = {kApiKeyVariable, "CODBAND_UPDATE_GOLDEN"};
constexpr std::string_view kOtherPrefixes[] = {"CODBAND_SERVICE_", "CODBAND_PORT"};

// "; did you mean server.listen?", or all known names if none is near.
std::string Suggestion(std::string_view name, const std::vector<std::string>& known) {
  if (const auto nearest = NearestName(name, known)) {
    return fmt::format("; did you mean {}?", *nearest);
  }
  return fmt::format(", expected one of {}", fmt::join(known, ", "));
}

template <typename Name>
std::vector<std::string> KeyNames(Name name) {
  std::vector<std::string> names;
  for (const ConfigKey& key : ConfigKeys()) {
    std::string text(name(key));
    if (std::ranges::count(names, text) == 0) names.push_back(std::move(text));
  }
  return names;
}

const ConfigKey* FindKey(std::string_view full_name) {
  const auto found = std::ranges::find(ConfigKeys(), full_name, &ConfigKey::FullName);
  return found == ConfigKeys().end() ? nullptr : &*found;
}

// A key of the same name in another section is the best suggestion, however the section is called.
Status UnknownKey(std::string_view section, std::string_view name, std::string_view origin) {
  const std::string full =
      section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
  std::string suggestion =
      Suggestion(full, KeyNames([](const ConfigKey& key) { return key.FullName(); }));
  const auto same = std::ranges::find(ConfigKeys(), name, &ConfigKey::name);
  if (same != ConfigKeys().end()) {
    suggestion = fmt::format("; did you mean {}?", same->FullName());
  }
  return Status::InvalidArgument(fmt::format("{} is unknown ({}){}", full, origin, suggestion));
}

// What was given: a value, or a description of something that cannot be one.
struct Given {
  std::optional<ConfigValue> value = {};
  std::string text = {};  // for messages
};

std::optional<ConfigValue> InRange(const ConfigKey& key, double number) {
  // NaN is outside of every range.
  if (!(number >= key.min && number <= key.max)) return std::nullopt;
  return number;
}

// The value in the type of the key, if it is allowed.
std::optional<ConfigValue> Convert(const ConfigKey& key, const ConfigValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  switch (key.kind) {
    case ConfigKind::kText:
      return text != nullptr ? std::optional(value) : std::nullopt;
    case ConfigKind::kSwitch:
      return std::holds_alternative<bool>(value) ? std::optional(value) : std::nullopt;
    case ConfigKind::kWhole:
      if (whole == nullptr || !InRange(key, static_cast<double>(*whole))) return std::nullopt;
      return value;
    case ConfigKind::kRealOrWord:
      if (text != nullptr) {
        return std::ranges::count(key.words, *text) > 0 ? std::optional(value) : std::nullopt;
      }
      [[fallthrough]];
    case ConfigKind::kReal:
      if (whole != nullptr) return InRange(key, static_cast<double>(*whole));
      return real != nullptr ? InRange(key, *real) : std::nullopt;
    case ConfigKind::kWord:
      if (text == nullptr || std::ranges::count(key.words, *text) == 0) return std::nullopt;
      return value;
  }
  return std::nullopt;
}

Status Set(ServeConfig& config, const ConfigKey& key, const Given& given, std::string_view origin) {
  std::string expected = key.AllowedText();
  std::optional<ConfigValue> value = {};
  if (given.value) value = Convert(key, *given.value);
  if (value) {
    const Status status = key.set(config, *value);
    if (status.ok()) {
      config.origins[key.FullName()] = origin;
      return {};
    }
    if (!status.message().empty()) {
      return Status::InvalidArgument(
          fmt::format("{} is {}: {} ({})", key.FullName(), given.text, status.message(), origin));
    }
  }
  return Status::InvalidArgument(
      fmt::format("{} is {}, expected {} ({})", key.FullName(), given.text, expected, origin));
}

// The value of a text for a key of this kind: files have types, variables and flags do not.
Given FromText(const ConfigKey& key, std::string_view text) {
  Given given{.text = fmt::format("'{}'", text)};
  const bool numeric = key.kind == ConfigKind::kWhole || key.kind == ConfigKind::kReal ||
                       key.kind == ConfigKind::kRealOrWord;
  if (key.kind == ConfigKind::kSwitch) {
    if (text == "true" || text == "false") given.value = text == "true";
  } else if (const auto whole = ParseNumber<std::int64_t>(text); numeric && whole) {
    given = {.value = *whole, .text = fmt::format("{}", *whole)};
  } else if (const auto real = ParseNumber<double>(text); numeric && real) {
    given = {.value = *real, .text = fmt::format("{}", *real)};
  } else {
    given.value = std::string(text);
  }
  return given;
}

Given FromNode(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return {.value = text->get(), .text = fmt::format("the string '{}'", text->get())};
  }
  if (const auto* whole = node.as_integer()) {
    return {.value = whole->get(), .text = fmt::format("{}", whole->get())};
  }
  if (const auto* real = node.as_floating_point()) {
    return {.value = real->get(), .text = fmt::format("{}", real->get())};
  }
  if (const auto* flag = node.as_boolean()) {
    return {.value = flag->get(), .text = flag->get() ? "true" : "false"};
  }
  if (node.is_array()) return {.value = {}, .text = "an array"};
  if (node.is_table()) return {.value = {}, .text = "a section"};
  return {.value = {}, .text = "a date or time"};
}

Status ReadSection(ServeConfig& config, std::string_view section, const toml::table& table,
                   const std::function<std::string(const toml::source_region&)>& origin) {
  for (const auto& [name, node] : table) {
    const ConfigKey* key = FindKey(fmt::format("{}.{}", section, name.str()));
    if (key == nullptr) return UnknownKey(section, name.str(), origin(name.source()));
    CODBAND_RETURN_IF_ERROR(Set(config, *key, FromNode(node), origin(name.source())));
  }
  return {};
}

// The parser goes down the parts of a key by recursion.
Status CheckDepth(const std::filesystem::path& path, std::string_view text) {
  constexpr std::ptrdiff_t kMostDots = 1000;
  for (TextLines lines(text); lines.Next();) {
    const std::ptrdiff_t dots = std::ranges::count(lines.line(), '.');
    if (dots <= kMostDots) continue;
    return Status::InvalidArgument(fmt::format("{} line {} has {} dots, expected at most {}",
                                               path.string(), lines.number(), dots, kMostDots));
  }
  return {};
}

Status ReadConfigFile(ServeConfig& config, const std::filesystem::path& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  CODBAND_RETURN_IF_ERROR(CheckDepth(path, text.value()));
  const auto origin = [&](const toml::source_region& place) {
    return fmt::format("{} line {}", path.string(), place.begin.line);
  };
  try {
    const toml::table root = toml::parse(text.value());
    const std::vector<std::string> sections =
        KeyNames([](const ConfigKey& key) { return fmt::format("[{}]", key.section); });
    for (const auto& [name, node] : root) {
      const std::string place = origin(name.source());
      const toml::table* table = node.as_table();
      const std::string section = fmt::format("[{}]", name.str());
      const bool known = std::ranges::count(sections, section) > 0;
      if (table == nullptr && !known) return UnknownKey("", name.str(), place);
      if (!known) {
        return Status::InvalidArgument(fmt::format("section {} is unknown ({}){}", section, place,
                                                   Suggestion(section, sections)));
      }
      if (table == nullptr) {
        return Status::InvalidArgument(fmt::format("{} is {}, expected a section {} ({})",
                                                   name.str(), FromNode(node).text, section,
                                                   place));
      }
      CODBAND_RETURN_IF_ERROR(ReadSection(config, name.str(), *table, origin));
    }
  } catch (const toml::parse_error& error) {
    return Status::InvalidArgument(
        fmt::format("{}: {}", origin(error.source()), error.description()));
  }
  return {};
}

bool IsOtherVariable(std::string_view name) {
  return std::ranges::count(kOtherVariables, name) > 0 ||
         std::ranges::any_of(kOtherPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

Status ReadVariables(ServeConfig& config, const std::vector<std::string>& environment) {
  for (const std::string_view entry : environment) {
    const std::size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    if (!name.starts_with(kPrefix) || IsOtherVariable(name) || equals == entry.npos) continue;
    const auto key = std::ranges::find(ConfigKeys(), name, &ConfigKey::VariableName);
    if (key == ConfigKeys().end()) {
      std::vector<std::string> known =
          KeyNames([](const ConfigKey& other) { return other.VariableName(); });
      known.emplace_back(kApiKeyVariable);
      return Status::InvalidArgument(
          fmt::format("environment variable {} is unknown{}", name, Suggestion(name, known)));
    }
    CODBAND_RETURN_IF_ERROR(Set(config, *key, FromText(*key, entry.substr(equals + 1)),
                                fmt::format("environment variable {}", name)));
  }
  return {};
}

Status ReadFlags(ServeConfig& config, const std::vector<ConfigFlag>& flags) {
  for (const ConfigFlag& flag : flags) {
    const ConfigKey* key = FindKey(flag.key);
    if (key == nullptr) {
      const std::size_t dot = flag.key.find('.');
      return UnknownKey(dot == flag.key.npos ? "" : flag.key.substr(0, dot),
                        dot == flag.key.npos ? flag.key : flag.key.substr(dot + 1), flag.flag);
    }
    CODBAND_RETURN_IF_ERROR(Set(config, *key, FromText(*key, flag.value), flag.flag));
  }
  return {};
}

// The key is sent in a header: visible characters only. Messages never show it.
Status ReadApiKey(ServeConfig& config, const std::vector<std::string>& environment) {
  std::optional<std::string> api_key;
  std::string origin;
  for (const std::string_view entry : environment) {
    if (entry.starts_with(kApiKeyVariable) &&
        entry.substr(kApiKeyVariable.size()).starts_with('=')) {
      api_key = entry.substr(kApiKeyVariable.size() + 1);
      origin = fmt::format("environment variable {}", kApiKeyVariable);
    }
  }
  if (!api_key && !config.api_key_file.empty()) {
    auto content = ReadFile(config.api_key_file);
    if (!content.ok()) {
      return {content.status().code(),
              fmt::format("server.api_key_file: {}", content.status().message())};
    }
    api_key = std::move(content).value();
    while (!api_key->empty() && (api_key->back() == '\n' || api_key->back() == '\r')) {
      api_key->pop_back();
    }
    origin = config.api_key_file.string();
  }
  if (!api_key) return {};
  if (api_key->empty() ||
      !std::ranges::all_of(*api_key, [](char c) { return c > ' ' && c < 127; })) {
    return Status::InvalidArgument(fmt::format(
        "the API key {}, expected visible ASCII characters without spaces ({})",
        api_key->empty() ? "is empty" : "has characters that are not allowed in a header", origin));
  }
  if (api_key->size() < kShortestKey) {
    return Status::InvalidArgument(fmt::format(
        "the API key has {} characters, expected at least {}: a short one can be guessed ({}); "
        "'openssl rand -hex 32' makes a good one",
        api_key->size(), kShortestKey, origin));
  }
  config.api_key = std::move(*api_key);
  return {};
}

std::string TomlText(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) {
    // With a decimal point, which shows that fractions are allowed.
    std::string text = fmt::format("{}", *real);
    if (text.find_first_of(".e") == text.npos) text += ".0";
    return text;
  }
  std::string quoted = "\"";
  for (const char c : std::get<std::string>(value)) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    variables.emplace_back(*entry);
  }
  return variables;
}

Result<ServeConfig> ReadServeConfig(const ConfigSources& sources) {
  ServeConfig config;
  const auto read = [&]() -> Status {
    if (!sources.file.empty()) CODBAND_RETURN_IF_ERROR(ReadConfigFile(config, sources.file));
    CODBAND_RETURN_IF_ERROR(ReadVariables(config, sources.environment));
    CODBAND_RETURN_IF_ERROR(ReadFlags(config, sources.flags));
    return ReadApiKey(config, sources.environment);
  };
  Status status = read();
  if (!status.ok()) return status;
  config.engine.keep_candidates = !config.decision_log.directory.empty();
  config.api.mode = std::get<std::string>(FindKey("policy.mode")->get(config));
  return config;
}

std::string PrintServeConfig(const ServeConfig& config) {
  const ServeConfig defaults;
  std::string text =
      "# Configuration of codband serve: every setting with its default and the allowed values.\n"
      "# The command line overrides the environment, the environment overrides this file. In the\n"
      "# environment server.listen is CODBAND_SERVER_LISTEN, and so on.\n";
  std::string_view section;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.section != section) text += fmt::format("\n[{}]\n", key.section);
    section = key.section;
    TextLines help(key.help);
    while (help.Next()) text += fmt::format("# {}\n", help.line());
    text += fmt::format("# Allowed: {}. Default: {}.\n", key.AllowedText(),
                        TomlText(key.get(defaults)));
    text += fmt::format("{} = {}\n", key.name, TomlText(key.get(config)));
  }
  return text;
}

std::filesystem::path BackupRoot(const ServeConfig& config) {
  std::error_code error;
  return std::filesystem::absolute(
      config.backup_root.empty() ? config.data / "backups" : config.backup_root, error);
}

Status CheckExposure(const ServeConfig& config) {
  if (IsLoopback(config.server.host) || RequiresKeys(config) || config.insecure) return {};
  return Status::InvalidArgument(fmt::format(
      "server.listen is {}, which other machines can reach, but there is no key: make some with "
      "'codband keys add' and name their file with keys.file, or put one into the environment "
      "variable {} or into the file that server.api_key_file names, or use --insecure to serve "
      "anybody",
      FormatListenAddress({config.server.host, config.server.port}), kApiKeyVariable));
}

}  // namespace codband::server
