// The extension module codband._core: what the Python package codband is made on.
#include <pybind11/pybind11.h>

#include <algorithm>

#include "codband/base/version.h"
#include "python/src/bindings.h"

namespace {

namespace py = pybind11;

// The first two protocols of pickle make an object of pybind11's own base class, which ends the
// process. The others are told what to do, or refuse.
void LeaveOutOldPickles(const py::module_& module) {
  static constexpr int kFirstWithNew = 2;
  const py::object plain = py::module_::import("builtins").attr("object").attr("__reduce_ex__");
  for (const auto& [name, value] : py::dict(module.attr("__dict__"))) {
    if (!py::isinstance<py::type>(value)) continue;
    value.attr("__reduce_ex__") = py::cpp_function(
        [plain](const py::object& self, int protocol) {
          return plain(self, std::max(protocol, kFirstWithNew));
        },
        py::is_method(value));
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of codband; import codband instead.";
  module.attr("__version__") = codband::kVersion;
  codband::python::BindPolicies(module);
  codband::python::BindBatches(module);
  codband::python::BindEngine(module);
  codband::python::BindRunner(module);
  codband::python::BindPrepare(module);
  codband::python::BindEvaluation(module);
  LeaveOutOldPickles(module);
}
