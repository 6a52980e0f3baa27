#pragma once

#include "codband/policy/params.h"

namespace codband {

// Parameters that several policies have in common.

// alpha: the width of an upper confidence bound.
ParamInfo AlphaParam(double default_value);
// lambda: the prior precision, or ridge, of a linear model.
ParamInfo LambdaParam(double default_value);
// v: the scale of a Thompson draw.
ParamInfo DrawScaleParam(double default_value);
// sigma: the noise of the rewards; the default is that of the context.
ParamInfo SigmaParam();

}  // namespace codband
