// The extension module codband._core: what the Python package codband is made on.
#include <pybind11/pybind11.h>

#include "codband/base/version.h"
#include "python/src/bindings.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of codband; import codband instead.";
  module.attr("__version__") = codband::kVersion;
  codband::python::BindPolicies(module);
  codband::python::BindBatches(module);
  codband::python::BindEngine(module);
  codband::python::BindRunner(module);
  codband::python::BindPrepare(module);
  codband::python::BindEvaluation(module);
}
