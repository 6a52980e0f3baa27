#include "codband/policy/common_params.h"

#include <utility>

namespace codband {

ParamInfo NumberParam(std::string name, std::string help, double min, double max,
                      double default_value) {
  return {.name = std::move(name),
          .help = std::move(help),
          .min = min,
          .max = max,
          .default_value = default_value};
}

ParamInfo WholeParam(std::string name, std::string help, double max, std::size_t default_value) {
  ParamInfo param =
      NumberParam(std::move(name), std::move(help), 1, max, static_cast<double>(default_value));
  param.integer = true;
  return param;
}

ParamInfo AlphaParam(double default_value) {
  ParamInfo alpha = NumberParam("alpha", "exploration: the width of the upper confidence bound", 0,
                                1000, default_value);
  alpha.live = true;
  return alpha;
}

ParamInfo LambdaParam(double default_value) {
  return NumberParam("lambda", "precision of the prior: the ridge of the regression", 1e-6, 1e6,
                     default_value);
}

ParamInfo DrawScaleParam(double default_value) {
  ParamInfo v = NumberParam("v", "scale of the Thompson draw: 0 is greedy, 1 the posterior", 0,
                            1000, default_value);
  v.live = true;
  return v;
}

ParamInfo SigmaParam() {
  ParamInfo sigma =
      NumberParam("sigma", "standard deviation of the noise of rewards", 1e-6, 1e6, 0.1);
  sigma.default_from = DefaultFrom::kNoise;
  return sigma;
}

}  // namespace codband
