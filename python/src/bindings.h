#pragma once

#include <pybind11/pybind11.h>

namespace codband::python {

// Each adds its part to the module codband._core.
void BindPolicies(pybind11::module_& module);
void BindBatches(pybind11::module_& module);
void BindEngine(pybind11::module_& module);
void BindRunner(pybind11::module_& module);
void BindPrepare(pybind11::module_& module);
void BindEvaluation(pybind11::module_& module);

}  // namespace codband::python
