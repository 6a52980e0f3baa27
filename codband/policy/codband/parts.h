#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/exploration.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_prior.h"
#include "codband/policy/item_effects.h"

namespace codband {

using LikelihoodFactory = std::unique_ptr<Likelihood> (*)(std::size_t dim,
                                                          const CoDBandOptions& options);
using DetectorFactory = std::unique_ptr<ChangeDetector> (*)(const DetectorContext& context);
using ModelPriorFactory = ModelPrior (*)(const CoDBandOptions& options);
// nullptr: items have no effects.
using ItemEffectsFactory = ItemEffects (*)(const CoDBandOptions& options);

// A part that can be plugged into CoDBand: the parameter and the word that select it, and what
// makes it; `bool` where a part is either on or off.
struct Part {
  std::string_view parameter;
  std::string_view word;
  std::string_view help;
  std::variant<LikelihoodFactory, DetectorFactory, ModelPriorFactory, ItemEffectsFactory,
               Exploration, bool>
      make;
};

// The parts that a parameter selects from, the default first. The table is in parts.cc, and is the
// only list: the parameters' allowed words come from it.
std::span<const Part> PartsOf(std::string_view parameter);

// The part of that word; throws std::invalid_argument if there is none.
const Part& FindPart(std::string_view parameter, std::string_view word);

// What makes it. Precondition: parts of this parameter are made so.
template <typename Make>
Make FindPart(std::string_view parameter, std::string_view word) {
  return std::get<Make>(FindPart(parameter, word).make);
}

}  // namespace codband
