#include "codband/policy/common_params.h"

namespace codband {

ParamInfo AlphaParam(double default_value) {
  return {.name = "alpha",
          .help = "how much uncertainty attracts: the width of the confidence bound",
          .min = 0,
          .max = 1000,
          .default_value = default_value,
          .live = true};
}

ParamInfo LambdaParam(double default_value) {
  return {.name = "lambda",
          .help = "precision of the prior: the ridge added to the diagonal",
          .min = 1e-6,
          .max = 1e6,
          .default_value = default_value};
}

ParamInfo DrawScaleParam(double default_value) {
  return {.name = "v",
          .help = "scale of the Thompson draw: 0 is greedy, 1 the posterior",
          .min = 0,
          .max = 1000,
          .default_value = default_value,
          .live = true};
}

ParamInfo SigmaParam() {
  return {.name = "sigma",
          .help = "standard deviation of the rewards' noise",
          .min = 1e-6,
          .max = 1e6,
          .default_value = 0.1,
          .default_from = DefaultFrom::kNoise};
}

}  // namespace codband
