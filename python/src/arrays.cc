#include "python/src/arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "codband/engine/records.h"

namespace codband::python {
namespace {

std::string TypeName(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__"));
}

// What Python says about a failed conversion becomes part of our own message.
[[noreturn]] void Refuse(const char* field, const std::string& problem) {
  throw py::value_error(fmt::format("{}: {}", field, problem));
}

py::array AsArray(py::handle value, const char* field) {
  if (py::isinstance<py::array>(value)) return py::reinterpret_borrow<py::array>(value);
  try {
    // A mixture of lengths makes NumPy warn and give objects, or throw, depending on its version.
    return py::module_::import("numpy").attr("asarray")(value);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    Refuse(field, fmt::format("cannot be made an array: {}", std::string(py::str(error.value()))));
  }
}

bool IsMasked(const py::array& array) {
  return py::isinstance(array, py::module_::import("numpy").attr("ma").attr("MaskedArray"));
}

}  // namespace

Doubles ToDoubles(py::handle value, const char* field) {
  // The usual case first: nothing is converted, nothing looked up.
  const bool plain = Py_TYPE(value.ptr()) == py::detail::npy_api::get().PyArray_Type_;
  if (plain && py::array_t<double, py::array::c_style>::check_(value)) {
    const auto array = py::reinterpret_borrow<Doubles>(value);
    if ((array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0) return array;
  }
  const py::array array = AsArray(value, field);
  const char kind = array.dtype().kind();
  if (std::string_view("fiub").find(kind) == std::string_view::npos) {
    Refuse(field, fmt::format("holds {}, expected real numbers",
                              std::string(py::str(array.dtype().attr("name")))));
  }
  if (!plain && IsMasked(array)) Refuse(field, "is a masked array, expected one without a mask");
  auto converted = Doubles::ensure(array);
  if (!converted) throw py::error_already_set();
  return converted;
}

Doubles ToDoubles(py::handle value, const char* field, py::ssize_t axes, const std::string& shape) {
  Doubles array = ToDoubles(value, field);
  if (array.ndim() != axes) {
    Refuse(field, fmt::format("has the shape {}, expected {}",
                              std::string(py::str(array.attr("shape"))), shape));
  }
  return array;
}

std::uint64_t ToNumber(py::handle value, const char* field, const char* expected) {
  if (!PyIndex_Check(value.ptr())) {
    Refuse(field, fmt::format("is of type {}, expected {}", TypeName(value), expected));
  }
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number) {  // an array, or what its author says
    PyErr_Clear();
    Refuse(field, fmt::format("is of type {}, expected {}", TypeName(value), expected));
  }
  const unsigned long long converted = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Refuse(field, fmt::format("is {}, expected {}", std::string(py::str(number)), expected));
  }
  return converted;
}

double ToReal(py::handle value, const char* field) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (too_large) Refuse(field, "is too large, expected a real number");
    ThrowWrongType(value, field, "a real number");
  }
  return number;
}

void ThrowWrongType(py::handle value, const std::string& field, const std::string& expected) {
  throw py::value_error(
      fmt::format("{}: is of type {}, expected {}", field, TypeName(value), expected));
}

py::object ToList(py::handle value, const char* field, const char* expected) {
  if (PyUnicode_Check(value.ptr()) || !PySequence_Check(value.ptr())) {
    ThrowWrongType(value, field, expected);
  }
  auto list = py::reinterpret_steal<py::object>(PySequence_Fast(value.ptr(), ""));
  if (list) return list;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
  PyErr_Clear();  // an array without axes
  ThrowWrongType(value, field, expected);
}

UserId ToUser(py::handle value) {
  if (!PyUnicode_Check(value.ptr())) {
    return ToNumber(value, "user", "a text, or a whole number from 0 to 2**64 - 1");
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    Refuse("user", "is no valid Unicode");
  }
  return engine::HashUser({text, static_cast<std::size_t>(size)});
}

std::vector<UserId> ToUsers(py::handle values) {
  std::vector<UserId> users;
  if (py::isinstance<py::array>(values)) {
    const auto array = py::reinterpret_borrow<py::array>(values);
    if (array.ndim() == 1 && array.dtype().kind() == 'u') {
      const auto numbers =
          py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>::ensure(array);
      return {numbers.data(), numbers.data() + numbers.size()};
    }
    if (array.ndim() == 1 && array.dtype().kind() == 'i') {
      const auto numbers =
          py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>::ensure(array);
      users.reserve(static_cast<std::size_t>(numbers.size()));
      for (py::ssize_t i = 0; i < numbers.size(); ++i) {
        const std::int64_t number = numbers.data()[i];
        if (number < 0) Refuse("users", fmt::format("has {}, expected at least 0", number));
        users.push_back(static_cast<UserId>(number));
      }
      return users;
    }
  }
  for (const py::handle value : ToList(values, "users", "a sequence of users")) {
    users.push_back(ToUser(value));
  }
  return users;
}

py::object ModelObject(ModelId model) {
  if (model == kNoModel) return py::none();
  return py::int_(model);
}

Status UnknownSetting(const std::string& name, std::span<const std::string_view> known) {
  std::string text =
      fmt::format("{}: is unknown, expected one of {}", name, fmt::join(known, ", "));
  std::ranges::replace(text, '-', '_');
  return Status::InvalidArgument(std::move(text));
}

Status WithoutDashes(const Status& status) {
  if (!status.message().starts_with("--")) return status;
  return {status.code(), status.message().substr(2)};
}

void ThrowIfError(const Status& status) {
  if (status.ok()) return;
  if (status.code() == StatusCode::kInvalidArgument) throw py::value_error(status.message());
  if (status.code() == StatusCode::kNotFound) throw py::key_error(status.message());
  // The classes are Python's own: codband/errors.py.
  const py::object type = py::module_::import("codband.errors")
                              .attr("of_code")(std::string(StatusCodeName(status.code())));
  PyErr_SetString(type.ptr(), status.message().c_str());
  throw py::error_already_set();
}

}  // namespace codband::python
