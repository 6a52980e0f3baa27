#include "codband/policy/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/base/parse.h"
#include "codband/base/text.h"

namespace codband {
namespace {

std::vector<std::string> Names(const auto& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

}  // namespace

std::string ParamInfo::AllowedText() const {
  if (!words.empty()) return fmt::format("one of {}", fmt::join(words, ", "));
  return fmt::format("{} from {} to {}", integer ? "a whole number" : "a number", min, max);
}

std::string ParamInfo::DefaultText() const {
  if (!words.empty()) return words[static_cast<std::size_t>(default_value)];
  switch (default_from) {
    case DefaultFrom::kNoise:
      return fmt::format("the noise where it is known, else {}", default_value);
    case DefaultFrom::kDimension:
      return "the number of features";
    case DefaultFrom::kValue:
      break;
  }
  return fmt::format("{}", default_value);
}

Result<ParamValues> ParamValues::Parse(const PolicyInfo& info, std::string_view text,
                                       const PolicyContext& context) {
  ParamValues values(info);
  for (const ParamInfo& param : info.params) {
    double value = param.default_value;
    if (param.default_from == DefaultFrom::kNoise) value = context.noise.value_or(value);
    if (param.default_from == DefaultFrom::kDimension) value = static_cast<double>(context.dim);
    if (!(value >= param.min && value <= param.max) && param.words.empty()) {
      return Status::InvalidArgument(
          fmt::format("policy '{}': {} = {} (the default here), expected {}", info.name, param.name,
                      value, param.AllowedText()));
    }
    values.values_[param.name] = value;
  }
  const std::vector<std::string_view> items = SplitList(text);
  for (const std::string_view& item : items) {
    const std::size_t equals = item.find('=');
    if (equals != item.npos) {
      CODBAND_RETURN_IF_ERROR(values.Set(item.substr(0, equals), item.substr(equals + 1)));
      continue;
    }
    const auto preset = std::ranges::find(info.presets, item, &Preset::name);
    if (&item != &items.front() || preset == info.presets.end()) {
      return Status::InvalidArgument(fmt::format(
          "policy '{}': '{}' is neither a preset ({}) nor name=value", info.name, item,
          info.presets.empty() ? "it has none"
                               : fmt::format("{}", fmt::join(Names(info.presets), ", "))));
    }
    for (const auto& [name, value] : preset->values) CODBAND_CHECK(values.Set(name, value).ok());
  }
  return values;
}

const ParamInfo* ParamValues::Find(std::string_view name) const {
  const auto found = std::ranges::find(info_->params, name, &ParamInfo::name);
  return found == info_->params.end() ? nullptr : &*found;
}

Status ParamValues::Set(std::string_view name, std::string_view text) {
  const ParamInfo* param = Find(name);
  if (param == nullptr) {
    return Status::InvalidArgument(
        info_->params.empty()
            ? fmt::format("policy '{}' takes no parameters, so '{}' is unknown", info_->name, name)
            : fmt::format("policy '{}': unknown parameter '{}'; it takes {}", info_->name, name,
                          fmt::join(Names(info_->params), ", ")));
  }
  std::optional<double> value;
  if (!param->words.empty()) {
    const auto word = std::ranges::find(param->words, text);
    if (word != param->words.end()) value = static_cast<double>(word - param->words.begin());
  } else {
    value = ParseNumber<double>(text);
    const bool allowed = value && *value >= param->min && *value <= param->max &&
                         (!param->integer || *value == std::floor(*value));
    if (!allowed) value.reset();
  }
  if (!value) {
    return Status::InvalidArgument(fmt::format("policy '{}': {} = '{}', expected {}", info_->name,
                                               name, text, param->AllowedText()));
  }
  values_[param->name] = *value;
  return {};
}

double ParamValues::Number(std::string_view name) const {
  const auto found = values_.find(name);
  CODBAND_CHECK(found != values_.end());
  return found->second;
}

std::size_t ParamValues::Integer(std::string_view name) const {
  return static_cast<std::size_t>(Number(name));
}

std::string_view ParamValues::Word(std::string_view name) const {
  const ParamInfo* param = Find(name);
  CODBAND_CHECK(param != nullptr && !param->words.empty());
  return param->words[Integer(name)];
}

std::string ParamValues::ValueText(const ParamInfo& param) const {
  return param.words.empty() ? fmt::format("{}", Number(param.name))
                             : std::string(Word(param.name));
}

Status ParamValues::CheckChange(const ParamValues& before) const {
  for (const ParamInfo& param : info_->params) {
    if (param.live || Number(param.name) == before.Number(param.name)) continue;
    return Status::InvalidArgument(fmt::format(
        "policy '{}': {} = {}, expected {}, with which the saved state was learned: this "
        "parameter cannot change",
        info_->name, param.name, ValueText(param), before.ValueText(param)));
  }
  return {};
}

std::string ParamValues::Spec() const {
  std::string spec = info_->name;
  char separator = ':';
  for (const ParamInfo& param : info_->params) {
    spec += fmt::format("{}{}={}", separator, param.name, ValueText(param));
    separator = ',';
  }
  return spec;
}

}  // namespace codband
