#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/random.h"
#include "codband/base/status.h"
#include "codband/policy/policy.h"

namespace codband::python {

namespace py = pybind11;

// What Python passes, as C++ uses it. Everything that does not fit throws ValueError with the name
// of the argument, what it is and what was expected. All functions need the GIL.

// Row-major, aligned, in the machine's byte order.
using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast |
                                        py::detail::npy_api::NPY_ARRAY_ALIGNED_>;

// Any real numbers: the array itself if it has the right layout, else a converted copy. Objects,
// texts, dates, complex and masked numbers are refused.
Doubles ToDoubles(py::handle value, const char* field);
// The same with a fixed number of axes: `shape` describes them to people, as in "(arms, 25)".
Doubles ToDoubles(py::handle value, const char* field, py::ssize_t axes, const std::string& shape);

inline std::span<const double> Values(const Doubles& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

// "field: is of type list, expected a Decision"
[[noreturn]] void ThrowWrongType(py::handle value, const std::string& field,
                                 const std::string& expected);

// A list or tuple of what a sequence other than a text holds.
py::object ToList(py::handle value, const char* field, const char* expected);

// A whole number from 0 to 2^64 - 1, or a text, which is hashed as the server does.
UserId ToUser(py::handle value);
std::vector<UserId> ToUsers(py::handle values);

// A whole number from 0 to 2^64 - 1; `expected` is what to say of anything else.
std::uint64_t ToNumber(py::handle value, const char* field,
                       const char* expected = "a whole number from 0 to 2**64 - 1");

// A real number; NaN and infinity are numbers, too.
double ToReal(py::handle value, const char* field);

// The object that Python holds; `expected` is the name of its class.
template <typename T>
const T& ToInstance(py::handle value, const char* field, const char* expected) {
  if (!py::isinstance<T>(value)) ThrowWrongType(value, field, expected);
  return value.cast<const T&>();
}

// None for kNoModel.
py::object ModelObject(ModelId model);

// A new array with a copy of the values.
template <typename T>
py::array_t<T> CopyOf(std::span<const T> values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// That a setting is unknown, and which there are, as Python spells them: with underscores.
Status UnknownSetting(const std::string& name, std::span<const std::string_view> known);

// A status whose message names a flag of the command line ("--users = 0, …"), without the dashes.
Status WithoutDashes(const Status& status);

// Throws what Python users expect: ValueError for a wrong argument, KeyError for what does not
// exist, and codband.Error for the rest.
void ThrowIfError(const Status& status);
template <typename T>
T ValueOf(Result<T> result) {
  ThrowIfError(result.status());
  return std::move(result).value();
}

}  // namespace codband::python
