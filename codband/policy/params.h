#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/ground_truth.h"

namespace codband {

class UserGraph;

// What the caller knows when it makes a policy.
struct PolicyContext {
  std::size_t dim = 0;                 // number of features
  std::optional<double> noise = {};    // σ of the rewards, where it is known (a simulation)
  const GroundTruth* truth = nullptr;  // outlives the policy; simulations only
  const UserGraph* friends = nullptr;  // outlives the policy; where there is one
};

// Where the default of a parameter comes from.
enum class DefaultFrom {
  kValue,      // a constant
  kNoise,      // the σ of the context; the constant where that is unknown
  kDimension,  // the number of features
};

// One parameter of a policy: a number in [min, max], or one of several words.
struct ParamInfo {
  std::string name;
  std::string help;
  double min = 0;
  double max = 0;
  double default_value = 0;  // of a word: its index
  bool integer = false;
  DefaultFrom default_from = DefaultFrom::kValue;
  std::vector<std::string> words = {};
  // Whether it may change while the learned state is kept.
  bool live = false;

  std::string AllowedText() const;  // "a number from 0 to 100", "one of joint, product"
  std::string DefaultText() const;  // "0.6", "the noise, if known, else 0.1"
};

// A named set of parameter values: "codband:paper".
struct Preset {
  std::string name;
  std::string help;
  std::vector<std::pair<std::string, std::string>> values;
};

// Immutable facts about a policy.
struct PolicyInfo {
  std::string name;
  std::string summary;  // one line
  std::string paper;    // where it comes from
  bool shares_between_users = false;
  bool detects_changes = false;
  bool knows_truth = false;  // a yardstick for simulations: needs a GroundTruth
  std::vector<ParamInfo> params = {};
  std::vector<Preset> presets = {};
};

// The parameters of a policy about to be made, each within its range.
class ParamValues {
 public:
  // Reads "" or "preset" or "preset,name=value,…" or "name=value,…" for this policy. Errors name
  // the parameter, the value and what is allowed.
  static Result<ParamValues> Parse(const PolicyInfo& info, std::string_view text,
                                   const PolicyContext& context);

  // Preconditions: the policy has such a parameter, of that kind.
  double Number(std::string_view name) const;
  std::size_t Integer(std::string_view name) const;
  std::string_view Word(std::string_view name) const;

  // Whether a policy with these values can continue from the state learned with `before`: all
  // parameters but live ones must be equal. Precondition: values of the same policy.
  Status CheckChange(const ParamValues& before) const;

  // "name:p1=v1,p2=v2" with every parameter, exactly; parsing it gives the same values again.
  std::string Spec() const;

 private:
  explicit ParamValues(const PolicyInfo& info) : info_(&info) {}
  Status Set(std::string_view name, std::string_view value);
  const ParamInfo* Find(std::string_view name) const;
  std::string ValueText(const ParamInfo& param) const;

  const PolicyInfo* info_;
  std::map<std::string, double, std::less<>> values_;
};

}  // namespace codband
