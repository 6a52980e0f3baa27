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

namespace codband::server {

namespace beast = boost::beast;

// The parts of a request's head that the server uses. Reused by a connection.
struct RequestHead {
  enum class Expect { kNothing, kContinue, kOther };

  std::string method;
  std::string target;
  std::string api_key;
  int version = 11;  // 10 for HTTP/1.0
  Expect expect = Expect::kNothing;

  void Clear() {
    method.clear();
    target.clear();
    api_key.clear();
    expect = Expect::kNothing;
  }
};

// Beast's parser for one request, without its container of header fields: the few that are used go
// into a RequestHead, the body is appended to a string; both are borrowed. Stops after the header,
// so that the caller can decide about the body; eager(true) makes it go on. Not thread-safe.
class RequestReader final : public beast::http::basic_parser<true> {
 public:
  RequestReader(RequestHead& head, std::string& body) : head_(head), body_(body) {
    head_.Clear();
    body_.clear();
    // The caller, who knows the route, checks announced sizes.
    body_limit(std::numeric_limits<std::uint64_t>::max());
    header_limit(std::numeric_limits<std::uint32_t>::max());
  }

  // A longer body ends in http::error::body_limit.
  void set_max_body(std::uint64_t bytes) { max_body_ = bytes; }
  // Skips the rest of the body.
  void DropBody() { drop_ = true; }

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
  void on_field_impl(beast::http::field field, View name, View value, Error& error) override {
    error = {};
    if (is_header_done()) return;  // a trailer
    if (field == beast::http::field::expect) {
      head_.expect = beast::iequals(value, "100-continue") ? RequestHead::Expect::kContinue
                                                           : RequestHead::Expect::kOther;
    } else if (field == beast::http::field::unknown && beast::iequals(name, "X-API-Key")) {
      head_.api_key.assign(value.data(), value.size());
    }
  }
  void on_header_impl(Error& error) override { error = {}; }
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

  RequestHead& head_;
  std::string& body_;
  std::uint64_t max_body_ = 0;
  std::uint64_t body_bytes_ = 0;
  bool drop_ = false;
};

}  // namespace codband::server
