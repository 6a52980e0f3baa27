#include "codband/server/http/tls_stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "codband/base/file.h"

namespace codband::server {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Status BadTlsFile(std::string_view setting, const std::filesystem::path& file,
                  std::string_view reason) {
  return Status::InvalidArgument(fmt::format("tls.{} is {}: {}", setting, file.string(), reason));
}

Result<std::string> ReadTlsFile(std::string_view setting, const std::filesystem::path& file) {
  if (file.empty()) {
    return Status::InvalidArgument(
        fmt::format("tls.{} is missing: TLS needs both tls.certificate and tls.key", setting));
  }
  auto text = ReadFile(file);
  if (!text.ok()) return BadTlsFile(setting, file, text.status().message());
  return text;
}

std::string FingerprintOf(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
    return {};
  }
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

class AsioTlsStream final : public TlsStream {
 public:
  // The stream holds the context's SSL_CTX for as long as it lives.
  AsioTlsStream(Socket& socket, ssl::context& context) : stream_(socket, context) {}

  Awaitable<Opened> Handshake() override {
    error_code error;
    co_await stream_.async_handshake(ssl::stream_base::server,
                                     asio::redirect_error(kUseAwaitable, error));
    if (!error) co_return Opened::kYes;
    const bool plain =
        error.category() == asio::error::get_ssl_category() &&
        ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
    co_return plain ? Opened::kPlainHttp : Opened::kNo;
  }
  Awaitable<std::size_t> ReadSome(char* data, std::size_t size, error_code& error) override {
    const std::size_t count = co_await stream_.async_read_some(
        asio::buffer(data, size), asio::redirect_error(kUseAwaitable, error));
    co_return count;
  }
  Awaitable<std::size_t> WriteSome(const char* data, std::size_t size, error_code& error) override {
    const std::size_t count = co_await stream_.async_write_some(
        asio::buffer(data, size), asio::redirect_error(kUseAwaitable, error));
    co_return count;
  }
  Awaitable<void> Shutdown() override {
    error_code ignored;
    co_await stream_.async_shutdown(asio::redirect_error(kUseAwaitable, ignored));
  }

 private:
  ssl::stream<Socket&> stream_;
};

}  // namespace

Result<TlsContext> LoadTls(const TlsFiles& files) {
  const auto certificate = ReadTlsFile("certificate", files.certificate);
  if (!certificate.ok()) return certificate.status();
  const auto key = ReadTlsFile("key", files.key);
  if (!key.ok()) return key.status();
  const auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(
      native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  error_code error;
  context->use_certificate_chain(asio::buffer(certificate.value()), error);
  if (error) {
    return BadTlsFile("certificate", files.certificate, "is not a certificate in PEM");
  }
  bool encrypted = false;
  // Without it OpenSSL would ask at the terminal.
  context->set_password_callback([&encrypted](std::size_t, ssl::context::password_purpose) {
    encrypted = true;
    return std::string();
  });
  context->use_private_key(asio::buffer(key.value()), ssl::context::pem, error);
  if (encrypted) {
    return BadTlsFile("key", files.key, "is encrypted, expected a key without a password");
  }
  context->set_password_callback(
      [](std::size_t, ssl::context::password_purpose) { return std::string(); });
  // OpenSSL also compares the key with the certificate here.
  if (error &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH) {
    return BadTlsFile(
        "key", files.key,
        fmt::format("does not belong to the certificate in {}", files.certificate.string()));
  }
  if (error || SSL_CTX_check_private_key(native) != 1) {
    return BadTlsFile("key", files.key, "is not a key in PEM");
  }
  return TlsContext(context);
}

std::string CertificateFingerprint(const TlsContext& context) {
  return FingerprintOf(SSL_CTX_get0_certificate(context->native_handle()));
}

std::string PeerFingerprint(const ssl_st* connection) {
  return FingerprintOf(SSL_get0_peer_certificate(connection));
}

std::unique_ptr<TlsStream> MakeTlsStream(Socket& socket, const TlsContext& context) {
  return std::make_unique<AsioTlsStream>(socket, *context);
}

}  // namespace codband::server
