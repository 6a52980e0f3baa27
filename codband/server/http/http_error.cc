#include "codband/server/http/http_error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>

namespace codband::server {
namespace {

struct Row {
  StatusCode from;
  int status;
  std::string_view code;
  int retry_after_s;
};

constexpr std::array<Row, 9> kTable = {{
    {StatusCode::kInvalidArgument, 400, "BadArgument", 0},
    {StatusCode::kNotFound, 404, "NotFound", 0},
    {StatusCode::kCorruption, 500, "Corruption", 0},
    {StatusCode::kIoError, 503, "IoError", 5},
    {StatusCode::kUnavailable, 503, "Unavailable", 1},
    {StatusCode::kCheckFailed, 409, "CheckFailed", 0},
    {StatusCode::kConflict, 409, "Conflict", 0},
    {StatusCode::kGone, 410, "Late", 0},
    {StatusCode::kRejected, 422, "NotLearned", 0},
}};

bool SaysNoSpace(std::string_view message) {
  constexpr std::string_view kWords = "no space";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(message.begin(), message.end(), kWords.begin(), kWords.end(), same) !=
         message.end();
}

bool NamesField(StatusCode code) {
  return code == StatusCode::kInvalidArgument || code == StatusCode::kConflict ||
         code == StatusCode::kGone || code == StatusCode::kRejected;
}

}  // namespace

HttpError ToHttpError(const Status& status) {
  const auto* row = std::find_if(kTable.begin(), kTable.end(),
                                 [&](const Row& other) { return other.from == status.code(); });
  CODBAND_CHECK(row != kTable.end());
  HttpError error{.status = row->status,
                  .code = row->code,
                  .message = status.message(),
                  .retry_after_s = row->retry_after_s};
  if (NamesField(status.code())) {
    const std::size_t colon = error.message.find(": ");
    if (colon != std::string::npos && error.message.find(' ') > colon) {
      error.field = error.message.substr(0, colon);
      error.message.erase(0, colon + 2);
    }
  }
  if (status.code() == StatusCode::kIoError && SaysNoSpace(status.message())) {
    error.status = 507;
    error.code = "NoSpace";
    error.retry_after_s = 0;
  }
  return error;
}

HttpError ErrorOfException(const std::exception_ptr& failure) {
  HttpError error{.status = 500, .code = "Internal", .message = "unknown failure"};
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    // A message so short needs no memory.
    error = {.status = 503, .code = "Unavailable", .message = "out of memory", .retry_after_s = 1};
  } catch (const std::exception& known) {
    error.message = known.what();
  } catch (...) {
  }
  return error;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

}  // namespace codband::server
