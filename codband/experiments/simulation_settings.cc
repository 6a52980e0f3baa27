#include "codband/experiments/simulation_settings.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "codband/base/check.h"
#include "codband/experiments/setting_text.h"

namespace codband::experiments {
namespace {

using Json = nlohmann::ordered_json;
using Options = sim::SyntheticOptions;

constexpr std::size_t kMany = 1'000'000'000;
constexpr std::string_view kOrders[] = {"turn", "random"};  // by VisitOrder

// A member that is a whole number.
template <std::size_t Options::*kMember>
struct Whole {
  static Status Parse(std::string_view flag, std::string_view text, Options& options) {
    return Assign(ParseWhole(flag, text, 1, kMany), options.*kMember);
  }
  static std::string Text(const Options& options) { return fmt::format("{}", options.*kMember); }
  static Json ToJson(const Options& options) { return options.*kMember; }
};

Status ParsePeriod(std::string_view flag, std::string_view text, Options& options) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto min = ParseWhole("", text.substr(0, colon), 1, kMany);
  const auto max = ParseWhole("", text.substr(std::min(colon + 1, text.size())), 1, kMany);
  if (!min.ok() || !max.ok() || min.value() > max.value()) {
    return Status::InvalidArgument(fmt::format(
        "{} = '{}', expected MIN:MAX with 1 ≤ MIN ≤ MAX, such as 500:3000", flag, text));
  }
  options.period_min = min.value();
  options.period_max = max.value();
  return {};
}

constexpr SimulationSetting kSettings[] = {
    {"--setting", "1|2|3|4", "How users change, see below (default 2)", true,
     [](std::string_view flag, std::string_view text, Options& options) {
       const auto setting = ParseWhole(flag, text, 1, 4);
       if (!setting.ok()) return setting.status();
       options = Options::Paper(static_cast<sim::Setting>(setting.value()));
       return Status();
     },
     [](const Options& options) { return fmt::format("{}", static_cast<int>(options.setting)); },
     [](const Options& options) { return Json(static_cast<int>(options.setting)); }},
    {"--users", "N", "Number of users (default 100; setting 3: 500)", true,
     Whole<&Options::users>::Parse, Whole<&Options::users>::Text, Whole<&Options::users>::ToJson},
    {"--models", "K", "Number of parameters at the start (default 10; setting 3: 2)", true,
     Whole<&Options::models>::Parse, Whole<&Options::models>::Text,
     Whole<&Options::models>::ToJson},
    {"--rounds", "T", "Number of rounds, each of N visits (default 3000; setting 3: 600)", true,
     Whole<&Options::rounds>::Parse, Whole<&Options::rounds>::Text,
     Whole<&Options::rounds>::ToJson},
    {"--period", "MIN:MAX", "Rounds between two changes of a user (default 500:3000)", true,
     ParsePeriod,
     [](const Options& options) {
       return fmt::format("{}:{}", options.period_min, options.period_max);
     },
     [](const Options& options) {
       return Json{options.period_min, options.period_max};
     },
     [](const Options& options) { return options.setting != sim::Setting::kStationary; }},
    {"--noise", "SIGMA", "Standard deviation of gaussian rewards and of ratings (default 0.1)",
     true,
     [](std::string_view flag, std::string_view text, Options& options) {
       return Assign(ParseReal(flag, text), options.noise);
     },
     [](const Options& options) { return fmt::format("{}", options.noise); },
     [](const Options& options) { return Json(options.noise); },
     [](const Options& options) { return sim::HasNoise(options.rewards); }},
    {"--arms", "A", "Arms offered at a visit (default 10)", true, Whole<&Options::arms>::Parse,
     Whole<&Options::arms>::Text, Whole<&Options::arms>::ToJson},
    {"--pool", "P",
     "Arms in the pool they are drawn from (default 1000); as many as --arms: always the same arms",
     true, Whole<&Options::pool>::Parse, Whole<&Options::pool>::Text,
     Whole<&Options::pool>::ToJson},
    {"--dim", "D", "Features of an arm (default 25)", true, Whole<&Options::dim>::Parse,
     Whole<&Options::dim>::Text, Whole<&Options::dim>::ToJson},
    {"--order", "turn|random",
     "Who visits in a round: every user once, or a random user each time (default turn)", false,
     [](std::string_view flag, std::string_view text, Options& options) {
       return Assign(ParseWord(flag, text, kOrders), options.order);
     },
     [](const Options& options) {
       return std::string(kOrders[static_cast<std::size_t>(options.order)]);
     },
     [](const Options& options) { return Json(kOrders[static_cast<std::size_t>(options.order)]); }},
    {"--drift", "", "Users change gradually instead of abruptly", false,
     [](std::string_view, std::string_view, Options& options) {
       options.drift = true;
       return Status();
     },
     [](const Options& options) { return fmt::format("{}", options.drift); },
     [](const Options& options) { return Json(options.drift); }},
    {"--separation", "S",
     "Approximate distance between parameters, 0.01 to 1.4 (default: spread over the sphere)",
     false,
     [](std::string_view flag, std::string_view text, Options& options) {
       return Assign(ParseReal(flag, text), options.separation.emplace());
     },
     [](const Options& options) {
       return options.separation ? fmt::format("{}", *options.separation) : std::string();
     },
     [](const Options& options) {
       return options.separation ? Json(*options.separation) : Json(nullptr);
     }},
    {"--rewards", "KIND", "Distribution of rewards, see below (default gaussian)", false,
     [](std::string_view flag, std::string_view text, Options& options) {
       return Assign(ParseWord(flag, text, sim::kRewardNames), options.rewards);
     },
     [](const Options& options) { return std::string(sim::RewardName(options.rewards)); },
     [](const Options& options) { return Json(sim::RewardName(options.rewards)); }},
};

// Compiles only while these are all members of SyntheticOptions: name a new one here, and give it a
// setting above.
constexpr std::size_t kMembers = [] {
  const auto [setting, users, models, rounds, period_min, period_max, noise, arms, pool, dim, order,
              drift, separation, rewards] = Options{};
  return std::tuple_size_v<decltype(std::make_tuple(setting, users, models, rounds, period_min,
                                                    period_max, noise, arms, pool, dim, order,
                                                    drift, separation, rewards))>;
}();
static_assert(kMembers == std::size(kSettings) + 1,
              "every member needs its setting; --period alone sets two");

bool Applies(const SimulationSetting& setting, const Options& options) {
  return setting.applies == nullptr || setting.applies(options);
}

bool IsNamed(const SimulationSetting& setting, const Options& options) {
  return setting.always_named || setting.text(options) != setting.text(Options{});
}

}  // namespace

std::span<const SimulationSetting> SimulationSettings() { return kSettings; }

Result<Options> ParseSimulation(std::span<const std::optional<std::string>> texts) {
  CODBAND_CHECK(texts.size() == std::size(kSettings));
  Options options;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i]) continue;
    CODBAND_RETURN_IF_ERROR(kSettings[i].parse(kSettings[i].flag, *texts[i], options));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i] || kSettings[i].name() != "noise" || Applies(kSettings[i], options)) continue;
    return Status::InvalidArgument(
        fmt::format("--noise = '{}', expected none: {} have no noise that could be set", *texts[i],
                    sim::RewardName(options.rewards)));
  }
  if (const Status status = options.Validate(); !status.ok()) {
    return Status::InvalidArgument("--" + status.message());
  }
  return options;
}

Json SimulationJson(const Options& options) {
  Json json;
  for (const SimulationSetting& setting : kSettings) {
    json[std::string(setting.name())] =
        Applies(setting, options) ? setting.json(options) : Json(nullptr);
  }
  return json;
}

std::string SimulationFlags(const Options& options) {
  std::string flags;
  for (const SimulationSetting& setting : kSettings) {
    if (!IsNamed(setting, options) || !Applies(setting, options)) continue;
    if (!flags.empty()) flags += ' ';
    flags += setting.flag;
    if (*setting.value != '\0') flags += " " + setting.text(options);
  }
  return flags;
}

std::string SimulationIdentity(const Options& options) {
  std::string identity;
  for (const SimulationSetting& setting : kSettings) {
    if (!IsNamed(setting, options)) continue;
    if (!identity.empty()) identity += ' ';
    identity += fmt::format("{} {}", setting.name(), setting.text(options));
  }
  return identity;
}

}  // namespace codband::experiments
