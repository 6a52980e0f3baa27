#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace codband {

// A `codband serve` on a temporary data directory. Both are gone at the end: when the object is
// destroyed, and when this process gets SIGINT or SIGTERM (the server stops, which ends whoever
// waits for it with an error). If this process is killed, the kernel stops the server; only the
// directory is left. At most one at a time.
class OwnServer {
 public:
  // Settings are section.key=value. Throws std::runtime_error if the server does not start.
  OwnServer(const std::string& program, const std::vector<std::string>& settings);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }

 private:
  void ReadPort();
  void Stop();

  std::filesystem::path directory_;
  pid_t pid_ = 0;
  int output_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace codband
