#pragma once

// clang-format off: g++ 12 needs it before Asio.
#include <utility>
// clang-format on

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace codband::server {

namespace beast = boost::beast;

// The cookie of a person who has logged in.
inline constexpr std::string_view kSessionCookie = "codband_session";

// With it a node of a cluster passes a request on. Such a one is not passed on again.
inline constexpr const char* kForwardedHeader = "X-Codband-Forwarded";

// The parts of a request's head that the server uses. Reused by a connection.
struct RequestHead {
  enum class Expect { kNothing, kContinue, kOther };
  enum class Type { kNone, kJson, kNdjson, kOther };  // Content-Type
  enum class Coding { kIdentity, kGzip, kOther };     // Content-Encoding
  enum class FetchSite { kUnknown, kOwn, kForeign };  // Sec-Fetch-Site: whose page sent it

  std::string method;
  std::string target;
  std::string host;    // the header, well-formed; empty: not sent (HTTP/1.0)
  std::string origin;  // empty: not sent
  std::string api_key;
  std::string session;    // the cookie of kSessionCookie; empty: not sent
  std::string csrf;       // X-CSRF-Token
  std::string forwarded;  // kForwardedHeader; empty: no node has passed it on
  bool accepts_gzip = false;
  int version = 11;  // 10 for HTTP/1.0
  Expect expect = Expect::kNothing;
  Type type = Type::kNone;
  Coding coding = Coding::kIdentity;
  FetchSite fetch_site = FetchSite::kUnknown;

  void Clear() {
    method.clear();
    target.clear();
    host.clear();
    origin.clear();
    api_key.clear();
    session.clear();
    csrf.clear();
    accepts_gzip = false;
    forwarded.clear();
    expect = Expect::kNothing;
    type = Type::kNone;
    coding = Coding::kIdentity;
    fetch_site = FetchSite::kUnknown;
  }
};

// Why a head is refused although it can be parsed: a literal of request_reader.cc.
struct HeadFault {
  int status = 400;
  std::string_view code;
  std::string_view field;
  std::string_view message;
};

// Beast's parser for one request, without its container of header fields: the few that are used go
// into a RequestHead, the body is appended to a string; both are borrowed. Stops after the header,
// so that the caller can decide about the body; eager(true) makes it go on. Not thread-safe.
//
// Stricter than Beast where two readers of the same bytes could see different messages (RFC 9112):
// any Transfer-Encoding but "chunked" alone, a second or composed Content-Length, a missing, second
// or malformed Host, a second field of those that mean something here, and folded lines are faults.
class RequestReader final : public beast::http::basic_parser<true> {
 public:
  RequestReader(RequestHead& head, std::string& body) : head_(head), body_(body) {
    head_.Clear();
    body_.clear();
    // The caller, who knows the route, checks announced sizes.
    body_limit(std::numeric_limits<std::uint64_t>::max());
    header_limit(std::numeric_limits<std::uint32_t>::max());
  }

  // Where the bytes of the next put() lie.
  void set_input(std::string_view input) { input_ = input; }
  // What is wrong with the head, after an error; nullptr: the error itself says it.
  const HeadFault* fault() const { return fault_; }

  // A longer body ends in http::error::body_limit.
  void set_max_body(std::uint64_t bytes) { max_body_ = bytes; }
  // Skips the rest of the body.
  void DropBody() { drop_ = true; }
  // After the header: whether a body follows. A chunked one counts, even if it is empty.
  bool has_body() const { return chunked() || content_length().value_or(0) > 0; }

 private:
  using View = beast::string_view;
  using Error = beast::error_code;

  void on_request_impl(beast::http::verb /*verb*/, View method, View target, int version,
                       Error& error) override {
    error = {};
    head_.version = version;
    head_.method.assign(method.data(), method.size());
    head_.target.assign(target.data(), target.size());
  }
  void on_response_impl(int /*code*/, View /*reason*/, int /*version*/, Error& error) override {
    error = {};
  }
  void on_field_impl(beast::http::field field, View name, View value, Error& error) override;
  void on_header_impl(Error& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/, Error& error) override {
    error = {};
  }
  std::size_t on_body_impl(View bytes, Error& error) override {
    error = {};
    if (drop_) return bytes.size();
    body_bytes_ += bytes.size();
    if (body_bytes_ > max_body_) {
      error = beast::http::error::body_limit;
      return 0;
    }
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, View /*extensions*/, Error& error) override {
    error = {};
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, View bytes, Error& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(Error& error) override { error = {}; }

  // Ends the parsing with the fault.
  void Refuse(const HeadFault& fault, Error& error);
  // Whether the field has not come before; else refuses it.
  bool First(unsigned seen, const HeadFault& twice, Error& error);
  // Whether the value stands on the line of its name.
  bool OnOneLine(View name, View value) const;
  // A key may come in several fields, if it is the same.
  void ReadKey(unsigned seen, const HeadFault& twice, std::string_view key, Error& error);
  void ReadTransferEncoding(View value, Error& error);
  void ReadContentLength(View value, Error& error);
  void ReadHost(View value, Error& error);
  void ReadContentType(View value, Error& error);
  void ReadContentEncoding(View value, Error& error);

  RequestHead& head_;
  std::string& body_;
  std::string_view input_;
  const HeadFault* fault_ = nullptr;
  unsigned seen_ = 0;  // bits of fields that may come once
  std::uint64_t max_body_ = 0;
  std::uint64_t body_bytes_ = 0;
  bool drop_ = false;
};

}  // namespace codband::server
