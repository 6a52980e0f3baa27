#include "codband/policy/codband/parts.h"

#include <array>

#include "codband/policy/codband/bayes_detector.h"
#include "codband/policy/codband/window_detector.h"

namespace codband {
namespace {

constexpr std::array kLikelihoods = {
    LikelihoodPart{"joint", "exact, from sufficient statistics", MakeJointLikelihood},
    LikelihoodPart{"product", "the paper's, over recent observations", MakeProductLikelihood},
};

constexpr std::array kDetectors = {
    DetectorPart{"bayes", "a Bayesian filter over the pool", MakeBayesDetector},
    DetectorPart{"window", "the paper's test over a window", MakeWindowDetector},
    DetectorPart{"none", "nobody ever changes", MakeNoDetector},
};

constexpr std::array kHypers = {
    SwitchPart{"learned", "inferred online by empirical Bayes", true},
    SwitchPart{"fixed", "as given by lambda, sigma and hazard", false},
};

constexpr std::array kModelPriors = {
    ModelPriorPart{"crp", "popular ones, by a Chinese restaurant process", MakeCrpPrior},
    ModelPriorPart{"hawkes", "recently popular ones", MakeHawkesPrior},
    ModelPriorPart{"friends", "those of friends, which needs a user graph", MakeFriendsPrior},
};

constexpr std::array kExplorations = {
    ExplorationPart{"adaptive", "where the arms call for it", DrawWhereUncertain},
    ExplorationPart{"thompson", "always", AlwaysDraw},
};

constexpr std::array kDepartures = {
    SwitchPart{"learned", "a random effect for each user, its variance learned", true},
    SwitchPart{"none", "users of a model are alike", false},
};

}  // namespace

std::span<const LikelihoodPart> LikelihoodParts() { return kLikelihoods; }
std::span<const DetectorPart> DetectorParts() { return kDetectors; }
std::span<const SwitchPart> HyperParts() { return kHypers; }
std::span<const ModelPriorPart> ModelPriorParts() { return kModelPriors; }
std::span<const ExplorationPart> ExplorationParts() { return kExplorations; }
std::span<const SwitchPart> DepartureParts() { return kDepartures; }

}  // namespace codband
