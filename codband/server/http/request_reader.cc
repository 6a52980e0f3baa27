#include "codband/server/http/request_reader.h"

#include <algorithm>
#include <functional>

#include "codband/server/http/authority.h"

namespace codband::server {
namespace {

using beast::http::field;

constexpr std::string_view kBadRequest = "BadRequest";
constexpr std::string_view kBearer = "Bearer ";

enum Seen : unsigned {
  kSeenHost = 1,
  kSeenLength = 2,
  kSeenTransfer = 4,
  kSeenType = 8,
  kSeenCoding = 16,
  kSeenOrigin = 32,
  kSeenKey = 64,            // X-API-Key
  kSeenBearer = 128,        // Authorization: Bearer
  kSeenSubscription = 256,  // Ocp-Apim-Subscription-Key, as clients of Personalizer send it
  kSeenAnyKey = kSeenKey | kSeenBearer | kSeenSubscription,
};

constexpr HeadFault kFolded = {400, kBadRequest, "headers",
                               "have a field that is continued on a second line"};
constexpr HeadFault kNoHost = {400, kBadRequest, "Host", "is missing"};
constexpr HeadFault kTwoHosts = {400, kBadRequest, "Host", "is given twice"};
constexpr HeadFault kBadHost = {400, kBadRequest, "Host",
                                "is malformed, expected a host and an optional port"};
constexpr HeadFault kTwoLengths = {400, kBadRequest, "Content-Length", "is given twice"};
constexpr HeadFault kBadLength = {400, kBadRequest, "Content-Length",
                                  "is malformed, expected one whole number"};
constexpr HeadFault kTwoTransfers = {400, kBadRequest, "Transfer-Encoding", "is given twice"};
constexpr HeadFault kBadTransfer = {400, kBadRequest, "Transfer-Encoding",
                                    "is malformed, expected chunked"};
constexpr HeadFault kOldTransfer = {400, kBadRequest, "Transfer-Encoding",
                                    "is not allowed in HTTP/1.0"};
constexpr HeadFault kOtherTransfer = {501, "NotImplemented", "Transfer-Encoding",
                                      "is not supported, expected chunked"};
constexpr HeadFault kTwoTypes = {400, kBadRequest, "Content-Type", "is given twice"};
constexpr HeadFault kTwoCodings = {400, kBadRequest, "Content-Encoding", "is given twice"};
constexpr HeadFault kTwoOrigins = {400, kBadRequest, "Origin", "is given twice"};
constexpr HeadFault kTwoKeys = {400, kBadRequest, "X-API-Key", "is given twice"};
constexpr HeadFault kTwoBearers = {400, kBadRequest, "Authorization", "is given twice"};
constexpr HeadFault kTwoSubscriptions = {400, kBadRequest, "Ocp-Apim-Subscription-Key",
                                         "is given twice"};
constexpr HeadFault kOtherKey = {400, kBadRequest, "X-API-Key",
                                 "two header fields have different keys"};

bool IsTokenCharacter(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != kOthers.npos;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// A list of codings of which only the last may be "chunked".
bool IsCodingList(std::string_view value) {
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view coding = Trimmed(value.substr(0, comma));
    if (coding.empty() || !std::ranges::all_of(coding, IsTokenCharacter)) return false;
    if (comma == value.npos) return true;
    if (EqualNoCase(coding, "chunked")) return false;
    value.remove_prefix(comma + 1);
  }
}

// The value of a cookie in "a=1; b=2"; empty if there is none.
std::string_view FindCookie(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const std::string_view pair = Trimmed(cookies.substr(0, cookies.find(';')));
    cookies.remove_prefix(std::min(cookies.size(), cookies.find(';')));
    if (!cookies.empty()) cookies.remove_prefix(1);
    const std::size_t equals = pair.find('=');
    if (equals != pair.npos && pair.substr(0, equals) == name) return pair.substr(equals + 1);
  }
  return {};
}

// Whether "gzip" is in the list; one that is not wanted at all (q=0) is not.
bool AcceptsGzip(std::string_view list) {
  while (!list.empty()) {
    const std::string_view coding = Trimmed(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), list.find(',')));
    if (!list.empty()) list.remove_prefix(1);
    if (EqualNoCase(Trimmed(coding.substr(0, coding.find(';'))), "gzip")) {
      return coding.find("q=0") == coding.npos || coding.find("q=0.") != coding.npos;
    }
  }
  return false;
}

std::string_view ToStd(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void RequestReader::Refuse(const HeadFault& fault, Error& error) {
  fault_ = &fault;
  error = beast::http::error::bad_field;
}

bool RequestReader::First(unsigned seen, const HeadFault& twice, Error& error) {
  if ((seen_ & seen) != 0) {
    Refuse(twice, error);
    return false;
  }
  seen_ |= seen;
  return true;
}

bool RequestReader::OnOneLine(View name, View value) const {
  const char* const after = name.data() + name.size() + 1;  // the colon
  const char* const begin = value.data();
  if (begin == after + 1 || begin == after) return true;
  // Beast copies a value of several lines elsewhere, unless the first ones are empty.
  if (std::less<>()(begin, after) || std::less<>()(input_.data() + input_.size(), begin)) {
    return false;
  }
  return std::find(after, begin, '\n') == begin;
}

void RequestReader::on_field_impl(field field, View name, View value, Error& error) {
  error = {};
  if (!OnOneLine(name, value)) return Refuse(kFolded, error);
  if (is_header_done()) return;  // a trailer
  switch (field) {
    case field::host:
      return ReadHost(value, error);
    case field::content_length:
      return ReadContentLength(value, error);
    case field::transfer_encoding:
      return ReadTransferEncoding(value, error);
    case field::content_type:
      return ReadContentType(value, error);
    case field::content_encoding:
      return ReadContentEncoding(value, error);
    case field::origin:
      if (First(kSeenOrigin, kTwoOrigins, error)) head_.origin.assign(value.data(), value.size());
      return;
    case field::authorization:
      // Other schemes are for others: a proxy may have asked for a password.
      if (EqualNoCase(ToStd(value).substr(0, kBearer.size()), kBearer)) {
        ReadKey(kSeenBearer, kTwoBearers, Trimmed(ToStd(value).substr(kBearer.size())), error);
      }
      return;
    case field::cookie:
      head_.session = FindCookie(ToStd(value), kSessionCookie);
      return;
    case field::accept_encoding:
      head_.accepts_gzip = AcceptsGzip(ToStd(value));
      return;
    case field::expect:
      head_.expect = beast::iequals(value, "100-continue") ? RequestHead::Expect::kContinue
                                                           : RequestHead::Expect::kOther;
      return;
    case field::unknown:
      if (beast::iequals(name, "X-API-Key")) {
        ReadKey(kSeenKey, kTwoKeys, ToStd(value), error);
      } else if (beast::iequals(name, "Ocp-Apim-Subscription-Key")) {
        ReadKey(kSeenSubscription, kTwoSubscriptions, ToStd(value), error);
      } else if (beast::iequals(name, "X-CSRF-Token")) {
        head_.csrf.assign(value.data(), value.size());
      } else if (beast::iequals(name, kForwardedHeader)) {
        head_.forwarded.assign(value.data(), value.size());
      } else if (beast::iequals(name, "Sec-Fetch-Site")) {
        head_.fetch_site = value == "same-origin" || value == "none"
                               ? RequestHead::FetchSite::kOwn
                               : RequestHead::FetchSite::kForeign;
      }
      return;
    default:
      return;
  }
}

void RequestReader::on_header_impl(Error& error) {
  error = {};
  if (head_.version >= 11 && (seen_ & kSeenHost) == 0) Refuse(kNoHost, error);
}

void RequestReader::ReadKey(unsigned seen, const HeadFault& twice, std::string_view key,
                            Error& error) {
  const bool first_of_all = (seen_ & kSeenAnyKey) == 0;
  if (!First(seen, twice, error)) return;
  if (!first_of_all && key != head_.api_key) return Refuse(kOtherKey, error);
  head_.api_key.assign(key);
}

void RequestReader::ReadTransferEncoding(View value, Error& error) {
  if (!First(kSeenTransfer, kTwoTransfers, error)) return;
  if (head_.version < 11) return Refuse(kOldTransfer, error);
  if (beast::iequals(value, "chunked")) return;
  Refuse(IsCodingList(ToStd(value)) ? kOtherTransfer : kBadTransfer, error);
}

void RequestReader::ReadContentLength(View value, Error& error) {
  if (!First(kSeenLength, kTwoLengths, error)) return;
  // Beast also takes "5, 5".
  if (!std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) {
    Refuse(kBadLength, error);
  }
}

void RequestReader::ReadHost(View value, Error& error) {
  if (!First(kSeenHost, kTwoHosts, error)) return;
  if (!ParseAuthority(ToStd(value))) return Refuse(kBadHost, error);
  head_.host.assign(value.data(), value.size());
}

void RequestReader::ReadContentType(View value, Error& error) {
  if (!First(kSeenType, kTwoTypes, error)) return;
  // Parameters such as charset=utf-8 do not matter: JSON is UTF-8.
  const std::string_view text = ToStd(value);
  const std::string_view type = Trimmed(text.substr(0, text.find(';')));
  if (EqualNoCase(type, "application/json")) {
    head_.type = RequestHead::Type::kJson;
  } else if (EqualNoCase(type, "application/x-ndjson")) {
    head_.type = RequestHead::Type::kNdjson;
  } else {
    head_.type = RequestHead::Type::kOther;
  }
}

void RequestReader::ReadContentEncoding(View value, Error& error) {
  if (!First(kSeenCoding, kTwoCodings, error)) return;
  if (beast::iequals(value, "gzip") || beast::iequals(value, "x-gzip")) {
    head_.coding = RequestHead::Coding::kGzip;
  } else if (beast::iequals(value, "identity")) {
    head_.coding = RequestHead::Coding::kIdentity;
  } else {
    head_.coding = RequestHead::Coding::kOther;
  }
}

}  // namespace codband::server
