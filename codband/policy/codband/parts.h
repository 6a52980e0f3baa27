#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/exploration.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_prior.h"

namespace codband {

// The parts that can be plugged into CoDBand, each under the word that selects it. The table is in
// parts.cc, and is the only list: the parameters' allowed words come from it, the default first.
template <typename Make>
struct Part {
  std::string_view word;
  std::string_view help;
  Make make;  // the factory, or the switch where a part is either on or off
};

using LikelihoodPart =
    Part<std::unique_ptr<Likelihood> (*)(std::size_t dim, const CoDBandOptions& options)>;
using DetectorPart = Part<std::unique_ptr<ChangeDetector> (*)(const DetectorContext& context)>;
using ModelPriorPart = Part<ModelPrior (*)(const CoDBandOptions& options)>;
using ExplorationPart = Part<DrawChance>;
using SwitchPart = Part<bool>;

std::span<const LikelihoodPart> LikelihoodParts();    // likelihood=
std::span<const DetectorPart> DetectorParts();        // detector=
std::span<const SwitchPart> HyperParts();             // hyper=: whether they are learned
std::span<const ModelPriorPart> ModelPriorParts();    // prior=
std::span<const ExplorationPart> ExplorationParts();  // explore=
std::span<const SwitchPart> DepartureParts();         // departure=: whether there are any

// The part of that word; throws std::invalid_argument if there is none.
template <typename Make>
const Part<Make>& FindPart(std::span<const Part<Make>> parts, std::string_view word) {
  std::string words;
  for (const Part<Make>& part : parts) {
    if (part.word == word) return part;
    words += (words.empty() ? "" : ", ") + std::string(part.word);
  }
  throw std::invalid_argument("[CoDBand] part '" + std::string(word) + "' is unknown, expected " +
                              words);
}

}  // namespace codband
