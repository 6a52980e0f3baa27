#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "codband/server/http/tls_files.h"

namespace codband::server {

// Writes a key and a certificate for localhost that it has signed itself, both new. For tests only.
inline TlsFiles WriteTestCertificate(const std::filesystem::path& directory,
                                     const std::string& name, const char* password = nullptr) {
  const TlsFiles files{.certificate = directory / (name + ".crt"),
                       .key = directory / (name + ".key")};
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
  X509_set_pubkey(certificate, key);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* file = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(files.key.c_str(), "w");
  PEM_write_PKCS8PrivateKey(
      file, key, password != nullptr ? EVP_aes_128_cbc() : nullptr, password,
      password != nullptr ? static_cast<int>(std::string_view(password).size()) : 0, nullptr,
      nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

// A client that speaks TLS and trusts everybody. For tests only.
class TlsTestClient {
 public:
  explicit TlsTestClient(std::uint16_t port, int newest = TLS1_3_VERSION)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)), context_(SSL_CTX_new(TLS_client_method())) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_, newest);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_);
    connected_ = SSL_connect(ssl_) == 1;
  }
  TlsTestClient(const TlsTestClient&) = delete;
  TlsTestClient& operator=(const TlsTestClient&) = delete;
  ~TlsTestClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ::close(socket_);
  }

  bool connected() const { return connected_; }
  int version() const { return SSL_version(ssl_); }

  bool Send(std::string_view bytes) {
    std::size_t written = 0;
    return SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written) == 1 && written == bytes.size();
  }
  // The next reply, with its head; what is read of it if the connection ends.
  std::string Receive() {
    std::size_t head = std::string::npos;
    while ((head = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadSome()) return input_;
    }
    std::size_t size = head + 4;
    const std::size_t field = input_.find("Content-Length: ");
    if (field < head) size += std::stoul(input_.substr(field + 16));
    while (input_.size() < size) {
      if (!ReadSome()) return input_;
    }
    std::string reply = input_.substr(0, size);
    input_.erase(0, size);
    return reply;
  }
  std::string Request(const std::string& method, const std::string& target,
                      const std::string& body = {}) {
    std::string request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
    if (!body.empty()) {
      request +=
          "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n";
    }
    Send(request + "\r\n" + body);
    return Receive();
  }
  // Whether the server has ended the connection as TLS demands, so that nothing can be cut off.
  bool EndedCleanly() {
    while (ReadSome()) continue;
    return SSL_get_error(ssl_, last_) == SSL_ERROR_ZERO_RETURN;
  }

 private:
  bool ReadSome() {
    char buffer[65536];
    last_ = SSL_read(ssl_, buffer, sizeof(buffer));
    if (last_ <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(last_));
    return true;
  }

  int socket_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
  int last_ = 1;
  std::string input_;
};

}  // namespace codband::server
