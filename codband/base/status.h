#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codband/base/check.h"

namespace codband {

// Kinds of errors, by what the caller can do about them.
enum class StatusCode {
  kOk,
  kInvalidArgument,  // the input is wrong: change it
  kNotFound,         // what was named does not exist
  kCorruption,       // stored bytes are not what was written
  kIoError,          // the disk or the network failed
  kUnavailable,      // temporary: try again
  kCheckFailed,      // a condition that the caller asked to verify does not hold
  kConflict,         // what is there already does not allow it: choose another name
  kGone,             // what was named has ended
  kRejected,         // it was kept, but cannot take effect
};

std::string_view StatusCodeName(StatusCode code);

// The outcome of an operation that can fail for external reasons: input, disk, stored bytes.
// A plain value; safe to copy and to use from one thread at a time.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status InvalidArgument(std::string message) {
    return {StatusCode::kInvalidArgument, std::move(message)};
  }
  static Status NotFound(std::string message) {
    return {StatusCode::kNotFound, std::move(message)};
  }
  static Status Corruption(std::string message) {
    return {StatusCode::kCorruption, std::move(message)};
  }
  static Status IoError(std::string message) { return {StatusCode::kIoError, std::move(message)}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "kCorruption: state file ends after 12 bytes", or "kOk".
  std::string ToString() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: a function returns either a T or a Status.
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    CODBAND_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // The value. Precondition: ok().
  T& value() & {
    CODBAND_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    CODBAND_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    CODBAND_CHECK(ok());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace codband

// Returns the Status of `expr` from the current function unless it is ok.
#define CODBAND_RETURN_IF_ERROR(expr)                                                              \
  do {                                                                                             \
    if (::codband::Status codband_status_ = (expr); !codband_status_.ok()) return codband_status_; \
  } while (false)
