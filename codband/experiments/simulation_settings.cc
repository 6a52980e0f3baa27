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
using SimulationOptions = sim::SyntheticOptions;

constexpr std::size_t kMostSimulation = 1'000'000'000;
constexpr std::string_view kSimulationOrders[] = {"turn", "random", "zipf"};  // by VisitOrder

// A member that is a whole number.
template <std::size_t SimulationOptions::*kMember>
struct Whole {
  static Status Parse(std::string_view flag, std::string_view text, SimulationOptions& options) {
    return Assign(ParseWhole(flag, text, 1, kMostSimulation), options.*kMember);
  }
  static std::string Text(const SimulationOptions& options) {
    return fmt::format("{}", options.*kMember);
  }
  static Json ToJson(const SimulationOptions& options) { return options.*kMember; }
};

// A whole number that may be 0.
template <std::size_t SimulationOptions::*kMember>
struct Count : Whole<kMember> {
  static Status Parse(std::string_view flag, std::string_view text, SimulationOptions& options) {
    return Assign(ParseWhole(flag, text, 0, kMostSimulation), options.*kMember);
  }
};

// A number that may be missing.
template <std::optional<double> SimulationOptions::*kMember>
struct Number {
  static Status Parse(std::string_view flag, std::string_view text, SimulationOptions& options) {
    return Assign(ParseReal(flag, text), (options.*kMember).emplace());
  }
  static std::string Text(const SimulationOptions& options) {
    return options.*kMember ? fmt::format("{}", *(options.*kMember)) : std::string();
  }
  static Json ToJson(const SimulationOptions& options) {
    return options.*kMember ? Json(*(options.*kMember)) : Json(nullptr);
  }
};

// Two members that are the ends of a range, MIN:MAX.
template <std::size_t SimulationOptions::*kMin, std::size_t SimulationOptions::*kMax>
struct Range {
  static Status Parse(std::string_view flag, std::string_view text, SimulationOptions& options) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto min = ParseWhole("", text.substr(0, colon), 1, kMostSimulation);
    const auto max =
        ParseWhole("", text.substr(std::min(colon + 1, text.size())), 1, kMostSimulation);
    if (!min.ok() || !max.ok() || min.value() > max.value()) {
      return Status::InvalidArgument(
          fmt::format("{} = '{}', expected MIN:MAX with 1 ≤ MIN ≤ MAX, such as {}", flag, text,
                      Text(SimulationOptions{})));
    }
    options.*kMin = min.value();
    options.*kMax = max.value();
    return {};
  }
  static std::string Text(const SimulationOptions& options) {
    return fmt::format("{}:{}", options.*kMin, options.*kMax);
  }
  static Json ToJson(const SimulationOptions& options) {
    return Json{options.*kMin, options.*kMax};
  }
};
using PeriodRange = Range<&SimulationOptions::period_min, &SimulationOptions::period_max>;
using PublishRange = Range<&SimulationOptions::publish_min, &SimulationOptions::publish_max>;

bool IsPartitioned(const SimulationOptions& options) { return options.partitions > 1; }

constexpr SimulationSetting kSimulationSettings[] = {
    {"--setting", "1|2|3|4", "How users change, see below (default 2)", true,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       const auto setting = ParseWhole(flag, text, 1, 4);
       if (!setting.ok()) return setting.status();
       options = SimulationOptions::Paper(static_cast<sim::Setting>(setting.value()));
       return Status();
     },
     [](const SimulationOptions& options) {
       return fmt::format("{}", static_cast<int>(options.setting));
     },
     [](const SimulationOptions& options) { return Json(static_cast<int>(options.setting)); }},
    {"--users", "N", "Number of users (default 100; setting 3: 500)", true,
     Whole<&SimulationOptions::users>::Parse, Whole<&SimulationOptions::users>::Text,
     Whole<&SimulationOptions::users>::ToJson},
    {"--models", "K", "Number of parameters at the start (default 10; setting 3: 2)", true,
     Whole<&SimulationOptions::models>::Parse, Whole<&SimulationOptions::models>::Text,
     Whole<&SimulationOptions::models>::ToJson},
    {"--rounds", "T", "Number of rounds, each of N visits (default 3000; setting 3: 600)", true,
     Whole<&SimulationOptions::rounds>::Parse, Whole<&SimulationOptions::rounds>::Text,
     Whole<&SimulationOptions::rounds>::ToJson},
    {"--period", "MIN:MAX", "Rounds between two changes of a user (default 500:3000)", true,
     PeriodRange::Parse, PeriodRange::Text, PeriodRange::ToJson,
     [](const SimulationOptions& options) { return options.setting != sim::Setting::kStationary; }},
    {"--noise", "SIGMA", "Standard deviation of gaussian rewards and of ratings (default 0.1)",
     true,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseReal(flag, text), options.noise);
     },
     [](const SimulationOptions& options) { return fmt::format("{}", options.noise); },
     [](const SimulationOptions& options) { return Json(options.noise); },
     [](const SimulationOptions& options) { return sim::HasNoise(options.rewards); }},
    {"--arms", "A", "Arms offered at a visit (default 10)", true,
     Whole<&SimulationOptions::arms>::Parse, Whole<&SimulationOptions::arms>::Text,
     Whole<&SimulationOptions::arms>::ToJson},
    {"--pool", "P",
     "Arms in the pool they are drawn from (default 1000); as many as --arms: always the same arms",
     true, Whole<&SimulationOptions::pool>::Parse, Whole<&SimulationOptions::pool>::Text,
     Whole<&SimulationOptions::pool>::ToJson},
    {"--dim", "D", "Features of an arm (default 25)", true, Whole<&SimulationOptions::dim>::Parse,
     Whole<&SimulationOptions::dim>::Text, Whole<&SimulationOptions::dim>::ToJson},
    {"--order", "turn|random|zipf",
     "Who visits in a round: every user once, or a random user each time, all alike or the i-th "
     "with a chance of 1/i (default turn)",
     false,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseWord(flag, text, kSimulationOrders), options.order);
     },
     [](const SimulationOptions& options) {
       return std::string(kSimulationOrders[static_cast<std::size_t>(options.order)]);
     },
     [](const SimulationOptions& options) {
       return Json(kSimulationOrders[static_cast<std::size_t>(options.order)]);
     }},
    {"--drift", "", "Users change gradually instead of abruptly", false,
     [](std::string_view, std::string_view, SimulationOptions& options) {
       options.drift = true;
       return Status();
     },
     [](const SimulationOptions& options) { return fmt::format("{}", options.drift); },
     [](const SimulationOptions& options) { return Json(options.drift); }},
    {"--separation", "S",
     "Approximate distance between parameters, 0.01 to 1.4 (default: spread over the sphere)",
     false,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseReal(flag, text), options.separation.emplace());
     },
     [](const SimulationOptions& options) {
       return options.separation ? fmt::format("{}", *options.separation) : std::string();
     },
     [](const SimulationOptions& options) {
       return options.separation ? Json(*options.separation) : Json(nullptr);
     }},
    {"--rewards", "KIND", "Distribution of rewards, see below (default gaussian)", false,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseWord(flag, text, sim::kRewardNames), options.rewards);
     },
     [](const SimulationOptions& options) { return std::string(sim::RewardName(options.rewards)); },
     [](const SimulationOptions& options) { return Json(sim::RewardName(options.rewards)); }},
    {"--item-effects", "V",
     "Arms are items with ids, each with an effect of its own of this variance; 0: with ids alone",
     false, Number<&SimulationOptions::item_effects>::Parse,
     Number<&SimulationOptions::item_effects>::Text,
     Number<&SimulationOptions::item_effects>::ToJson},
    {"--group-item-effects", "V", "The same for each pair of an item and a parameter", false,
     Number<&SimulationOptions::group_item_effects>::Parse,
     Number<&SimulationOptions::group_item_effects>::Text,
     Number<&SimulationOptions::group_item_effects>::ToJson},
    {"--features", "KIND",
     "What arms are like: gaussian, one-hot, padded with zeros, or alike (default gaussian)", false,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseWord(flag, text, sim::kFeatureNames), options.features);
     },
     [](const SimulationOptions& options) {
       return std::string(sim::kFeatureNames[static_cast<std::size_t>(options.features)]);
     },
     [](const SimulationOptions& options) {
       return Json(sim::kFeatureNames[static_cast<std::size_t>(options.features)]);
     }},
    {"--click-rate", "P", "Of clicks: the chance of an arm that fits neither well nor badly", false,
     Number<&SimulationOptions::click_rate>::Parse, Number<&SimulationOptions::click_rate>::Text,
     Number<&SimulationOptions::click_rate>::ToJson},
    {"--individual", "V",
     "How far users of one parameter are apart, as the square of a distance (default 0)", false,
     [](std::string_view flag, std::string_view text, SimulationOptions& options) {
       return Assign(ParseReal(flag, text), options.individual);
     },
     [](const SimulationOptions& options) { return fmt::format("{}", options.individual); },
     [](const SimulationOptions& options) { return Json(options.individual); }},
    {"--item-life", "T", "Rounds that an arm is in the pool; 0: all (default 0)", false,
     Count<&SimulationOptions::item_life>::Parse, Count<&SimulationOptions::item_life>::Text,
     Count<&SimulationOptions::item_life>::ToJson},
    {"--contexts", "C",
     "Visits are in one of so many contexts, with which features are crossed (default 0)", false,
     Count<&SimulationOptions::contexts>::Parse, Count<&SimulationOptions::contexts>::Text,
     Count<&SimulationOptions::contexts>::ToJson},
    {"--partitions", "P",
     "Users are spread over so many instances of a policy, which share what they learn (default 1)",
     false, Whole<&SimulationOptions::partitions>::Parse,
     Whole<&SimulationOptions::partitions>::Text, Whole<&SimulationOptions::partitions>::ToJson},
    {"--publish", "MIN:MAX",
     "Of partitions: visits of all users after which one tells the others what it learned, at the "
     "earliest and at the latest (default 100:5000)",
     false, PublishRange::Parse, PublishRange::Text, PublishRange::ToJson, IsPartitioned},
    {"--pool-delay", "V",
     "Of partitions: visits of all users until the others hear of it (default 100)", false,
     Count<&SimulationOptions::pool_delay>::Parse, Count<&SimulationOptions::pool_delay>::Text,
     Count<&SimulationOptions::pool_delay>::ToJson, IsPartitioned},
};

// Compiles only while these are all members of SyntheticOptions: name a new one here, and give it a
// setting above.
constexpr std::size_t kMembers = [] {
  const auto [setting, users, models, rounds, period_min, period_max, noise, arms, pool, dim, order,
              drift, separation, rewards, item_effects, group_item_effects, features, click_rate,
              individual, item_life, contexts, partitions, publish_min, publish_max, pool_delay] =
      SimulationOptions{};
  return std::tuple_size_v<decltype(std::make_tuple(
      setting, users, models, rounds, period_min, period_max, noise, arms, pool, dim, order, drift,
      separation, rewards, item_effects, group_item_effects, features, click_rate, individual,
      item_life, contexts, partitions, publish_min, publish_max, pool_delay))>;
}();
static_assert(kMembers == std::size(kSimulationSettings) + 2,
              "every member needs its setting; --period and --publish alone set two");

bool Applies(const SimulationSetting& setting, const SimulationOptions& options) {
  return setting.applies == nullptr || setting.applies(options);
}

bool IsNamed(const SimulationSetting& setting, const SimulationOptions& options) {
  return setting.always_named || setting.text(options) != setting.text(SimulationOptions{});
}

}  // namespace

std::span<const SimulationSetting> SimulationSettings() { return kSimulationSettings; }

Result<SimulationOptions> ParseSimulation(std::span<const std::optional<std::string>> texts) {
  CODBAND_CHECK(texts.size() == std::size(kSimulationSettings));
  SimulationOptions options;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i]) continue;
    CODBAND_RETURN_IF_ERROR(
        kSimulationSettings[i].parse(kSimulationSettings[i].flag, *texts[i], options));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i] || kSimulationSettings[i].name() != "noise" ||
        Applies(kSimulationSettings[i], options))
      continue;
    return Status::InvalidArgument(
        fmt::format("--noise = '{}', expected none: {} have no noise that could be set", *texts[i],
                    sim::RewardName(options.rewards)));
  }
  if (const Status status = options.Validate(); !status.ok()) {
    return Status::InvalidArgument("--" + status.message());
  }
  return options;
}

Json SimulationJson(const SimulationOptions& options) {
  Json json;
  for (const SimulationSetting& setting : kSimulationSettings) {
    json[std::string(setting.name())] =
        Applies(setting, options) ? setting.json(options) : Json(nullptr);
  }
  return json;
}

std::string SimulationFlags(const SimulationOptions& options) {
  std::string flags;
  for (const SimulationSetting& setting : kSimulationSettings) {
    if (!IsNamed(setting, options) || !Applies(setting, options)) continue;
    if (!flags.empty()) flags += ' ';
    flags += setting.flag;
    if (*setting.value != '\0') flags += " " + setting.text(options);
  }
  return flags;
}

std::string SimulationIdentity(const SimulationOptions& options) {
  std::string identity;
  for (const SimulationSetting& setting : kSimulationSettings) {
    if (!IsNamed(setting, options)) continue;
    if (!identity.empty()) identity += ' ';
    identity += fmt::format("{} {}", setting.name(), setting.text(options));
  }
  return identity;
}

}  // namespace codband::experiments
