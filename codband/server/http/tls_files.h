#pragma once

#include <filesystem>

namespace codband::server {

// PEM files of a server: its certificate with those that lead to a root, and its key.
struct TlsFiles {
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};

  bool empty() const { return certificate.empty() && key.empty(); }  // no TLS
};

}  // namespace codband::server
