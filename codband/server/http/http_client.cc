#include "codband/server/http/http_client.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <memory>
#include <optional>

#include "codband/base/parse.h"
#include "codband/base/version.h"
#include "codband/server/http/tls_stream.h"

namespace codband::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

std::string Authority(const HttpUrl& url) {
  return url.host.find(':') == std::string::npos ? fmt::format("{}:{}", url.host, url.port)
                                                 : fmt::format("[{}]:{}", url.host, url.port);
}

// Beast's synchronous calls have no timeouts: every call here is asynchronous and waited for.
class BeastClient final : public HttpClient {
 public:
  explicit BeastClient(HttpUrl url) : url_(std::move(url)), authority_(Authority(url_)) {}

  Status Open(std::chrono::milliseconds timeout) {
    asio::ip::tcp::resolver resolver(context_);
    error_code error;
    const auto addresses = resolver.resolve(url_.host, std::to_string(url_.port), error);
    if (error) {
      return Status::InvalidArgument(fmt::format("{}: {}", authority_, error.message()));
    }
    tls_.reset();
    stream_.emplace(context_);
    buffer_.clear();
    stream_->expires_after(timeout);
    error = Wait([&](auto done) {
      stream_->async_connect(addresses, [done](error_code result, const auto&) { done(result); });
    });
    if (!error && url_.tls) error = OpenTls();
    if (error) {
      stream_.reset();
      return {StatusCode::kUnavailable,
              fmt::format("cannot connect to {}: {}", authority_, error.message())};
    }
    stream_->socket().set_option(asio::ip::tcp::no_delay(true), error);
    return {};
  }

  Result<HttpReply> Send(const HttpRequest& request, std::chrono::milliseconds timeout) override {
    // The server may have closed an idle connection. Then it has read nothing of the request, and a
    // retry is safe.
    const bool reused = std::exchange(used_, true);
    if (!stream_) CODBAND_RETURN_IF_ERROR(Open(timeout));
    error_code error;
    auto reply = Exchange(request, timeout, error);
    if (reused && !reply.ok() &&
        (error == http::error::end_of_stream || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe)) {
      CODBAND_RETURN_IF_ERROR(Open(timeout));
      reply = Exchange(request, timeout, error);
    }
    if (!reply.ok()) Close();
    return reply;
  }

 private:
  using TlsLayer = asio::ssl::stream<beast::tcp_stream&>;

  // HttpUrl says what the certificate must be.
  error_code OpenTls() {
    asio::ssl::context tls(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    const bool pinned = !url_.fingerprint.empty();
    if (!pinned) {
      tls.set_default_verify_paths();
      tls.set_verify_mode(asio::ssl::verify_peer);
      tls.set_verify_callback(asio::ssl::host_name_verification(url_.host));
    }
    tls_ = std::make_unique<TlsLayer>(*stream_, tls);
    // What the macro SSL_set_tlsext_host_name does, without its cast.
    SSL_ctrl(tls_->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             url_.host.data());
    error_code error =
        Wait([&](auto done) { tls_->async_handshake(asio::ssl::stream_base::client, done); });
    // Nothing has been sent yet.
    if (!error && pinned && PeerFingerprint(tls_->native_handle()) != url_.fingerprint) {
      error = make_error_code(boost::system::errc::permission_denied);
    }
    return error;
  }

  template <typename Start>
  error_code Wait(Start start) {
    error_code result;
    start([&result](error_code error) { result = error; });
    context_.restart();
    context_.run();
    return result;
  }

  Result<HttpReply> Exchange(const HttpRequest& request, std::chrono::milliseconds timeout,
                             error_code& error) {
    http::request<http::string_body> message;
    message.method_string(request.method);
    message.target(request.target);
    message.version(11);
    message.set(http::field::host, authority_);
    message.set(http::field::user_agent, fmt::format("codband/{}", kVersion));
    if (!request.body.empty()) message.set(http::field::content_type, "application/json");
    for (const auto& [name, value] : request.headers) message.set(name, value);
    message.body() = request.body;
    message.prepare_payload();
    stream_->expires_after(timeout);
    error = Wait([&](auto done) {
      const auto written = [done](error_code result, std::size_t) { done(result); };
      if (tls_ != nullptr) {
        http::async_write(*tls_, message, written);
      } else {
        http::async_write(*stream_, message, written);
      }
    });
    if (error) return Failed("send to", error);
    http::response_parser<http::string_body> parser;
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    if (message.method() == http::verb::head) parser.skip(true);
    error = Wait([&](auto done) {
      const auto read = [done](error_code result, std::size_t) { done(result); };
      if (tls_ != nullptr) {
        http::async_read(*tls_, buffer_, parser, read);
      } else {
        http::async_read(*stream_, buffer_, parser, read);
      }
    });
    if (error) return Failed("read from", error);
    HttpReply reply{.status = parser.get().result_int(), .body = std::move(parser.get().body())};
    if (!parser.keep_alive()) Close();
    return reply;
  }

  void Close() {
    tls_.reset();
    stream_.reset();
  }

  Status Failed(const char* action, const error_code& error) const {
    if (error == beast::error::timeout) {
      return {StatusCode::kUnavailable, fmt::format("{} did not answer in time", authority_)};
    }
    return Status::IoError(fmt::format("cannot {} {}: {}", action, authority_, error.message()));
  }

  HttpUrl url_;
  const std::string authority_;
  asio::io_context context_;
  std::optional<beast::tcp_stream> stream_;
  std::unique_ptr<TlsLayer> tls_;  // over the stream; nullptr: plain HTTP
  beast::flat_buffer buffer_;
  bool used_ = false;
};

}  // namespace

Result<HttpUrl> ParseHttpUrl(std::string_view url) {
  const Status wrong =
      Status::InvalidArgument(fmt::format("'{}' is not a URL such as http://127.0.0.1:8080", url));
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  HttpUrl parsed;
  parsed.tls = url.starts_with(kSecure);
  if (!parsed.tls && !url.starts_with(kPlain)) return wrong;
  if (parsed.tls) parsed.port = 443;
  std::string_view rest = url.substr(parsed.tls ? kSecure.size() : kPlain.size());
  rest = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t colon = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  if (colon != rest.npos && (bracket == rest.npos || colon > bracket)) {
    const auto port = ParseNumber<std::uint16_t>(rest.substr(colon + 1));
    if (!port) return wrong;
    parsed.port = *port;
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return wrong;
  parsed.host = rest;
  return parsed;
}

Result<std::unique_ptr<HttpClient>> HttpClient::Connect(const HttpUrl& url,
                                                        std::chrono::milliseconds timeout) {
  auto client = std::make_unique<BeastClient>(url);
  CODBAND_RETURN_IF_ERROR(client->Open(timeout));
  return std::unique_ptr<HttpClient>(std::move(client));
}

}  // namespace codband::server
