// The settings of features.
#include <string>

#include "codband/features/column_space.h"
#include "codband/features/crossings.h"
#include "codband/server/config/config_keys.h"

namespace codband::server {

std::vector<ConfigKey> FeatureKeys() {
  return {
      {.section = "features",
       .name = "dimension",
       .kind = ConfigKind::kWhole,
       .min = 0,
       .max = kMaxFeatures,
       .help = "A fixed number of features of an item; named features are hashed into as many.\n"
               "0: as the data directory has it; a new one gives every name a column of its own.\n"
               "It cannot be changed later.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return static_cast<std::int64_t>(config.engine.dim);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.dim = static_cast<std::size_t>(std::get<std::int64_t>(value));
         return {};
       }},
      {.section = "features",
       .name = "max_columns",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = features::ColumnLimits::kMost,
       .help = "Columns for names and crossings of names. What comes beyond shares a quarter as\n"
               "many by a hash, which blurs it.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return static_cast<std::int64_t>(config.engine.columns.columns);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.columns.columns = static_cast<std::size_t>(std::get<std::int64_t>(value));
         return {};
       }},
      {.section = "features",
       .name = "crossings",
       .kind = ConfigKind::kText,
       .expected = "\"all\", \"none\", or pairs such as \"device:genre, hour:*\"",
       .help = "Which features of the context or the user turn the taste for which of the items:\n"
               "\"all\", \"none\", or pairs such as \"device:genre, hour:*\".",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.engine.crossings; },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         const std::string& text = std::get<std::string>(value);
         if (!features::CrossingRules::Parse(text).ok()) return Status::InvalidArgument("");
         config.engine.crossings = text;
         return {};
       }},
      {.section = "features",
       .name = "user_from",
       .kind = ConfigKind::kText,
       .expected = "a path such as user.id",
       .help = "Where a request has no userId: the path of the user's id in contextFeatures, such\n"
               "as \"user.id\". Without one the visitor is anonymous.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.api.user_from; },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.api.user_from = std::get<std::string>(value);
         return {};
       }},
      {.section = "features",
       .name = "max_abs",
       .kind = ConfigKind::kReal,
       .min = 1e-6,
       .max = kLargestNumber,
       .help = "Largest absolute value of a feature; items and actions with a larger one are\n"
               "refused with 400.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.engine.max_abs_feature;
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.max_abs_feature = std::get<double>(value);
         return {};
       }},
  };
}

}  // namespace codband::server
