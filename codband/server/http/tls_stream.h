#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "codband/base/status.h"
#include "codband/server/http/tls_files.h"
#include "codband/server/http/worker.h"

struct ssl_st;  // OpenSSL's SSL
namespace boost::asio::ssl {
class context;
}

namespace codband::server {

// What connections need to speak TLS 1.2 or later. Shared by the connections that began with it:
// one that is loaded later does not change them.
using TlsContext = std::shared_ptr<boost::asio::ssl::context>;
// kInvalidArgument, with the setting and its file, if one is missing, cannot be read, is not PEM,
// is encrypted, or if they do not belong together.
Result<TlsContext> LoadTls(const TlsFiles& files);
// The SHA-256 of the certificate, in hex: by it a client on this machine recognises the server.
std::string CertificateFingerprint(const TlsContext& context);
// The fingerprint of the peer's certificate; empty if it has none.
std::string PeerFingerprint(const ssl_st* connection);

// TLS over a socket, which is borrowed. One operation at a time; cancelling the socket ends it.
class TlsStream {
 public:
  virtual ~TlsStream() = default;

  enum class Opened { kYes, kNo, kPlainHttp };
  virtual Awaitable<Opened> Handshake() = 0;
  virtual Awaitable<std::size_t> ReadSome(char* data, std::size_t size,
                                          boost::system::error_code& error) = 0;
  virtual Awaitable<std::size_t> WriteSome(const char* data, std::size_t size,
                                           boost::system::error_code& error) = 0;
  // Tells the client that no more will come, and waits until it says the same.
  virtual Awaitable<void> Shutdown() = 0;
};
std::unique_ptr<TlsStream> MakeTlsStream(Socket& socket, const TlsContext& context);

}  // namespace codband::server
