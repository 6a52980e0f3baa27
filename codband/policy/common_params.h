#pragma once

#include <cstddef>
#include <string>

#include "codband/policy/params.h"

namespace codband {

// Ways to describe a parameter, and parameters that several policies have in common.

// A number from min to max.
ParamInfo NumberParam(std::string name, std::string help, double min, double max,
                      double default_value);
// A whole number from 1 to max.
ParamInfo WholeParam(std::string name, std::string help, double max, std::size_t default_value);

// alpha: the width of an upper confidence bound.
ParamInfo AlphaParam(double default_value);
// lambda: the prior precision, or ridge, of a linear model.
ParamInfo LambdaParam(double default_value);
// v: the scale of a Thompson draw.
ParamInfo DrawScaleParam(double default_value);
// sigma: the noise of the rewards; the default is that of the context.
ParamInfo SigmaParam();

}  // namespace codband
