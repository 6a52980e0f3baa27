#include "codband/base/status.h"

namespace codband {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "kOk";
    case StatusCode::kInvalidArgument:
      return "kInvalidArgument";
    case StatusCode::kNotFound:
      return "kNotFound";
    case StatusCode::kCorruption:
      return "kCorruption";
    case StatusCode::kIoError:
      return "kIoError";
    case StatusCode::kUnavailable:
      return "kUnavailable";
    case StatusCode::kCheckFailed:
      return "kCheckFailed";
    case StatusCode::kConflict:
      return "kConflict";
    case StatusCode::kGone:
      return "kGone";
    case StatusCode::kRejected:
      return "kRejected";
  }
  return "unknown code";
}

std::string Status::ToString() const {
  std::string text(StatusCodeName(code_));
  if (!message_.empty()) text.append(": ").append(message_);
  return text;
}

}  // namespace codband
