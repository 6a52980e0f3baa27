#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace codband {

// A link to a PostgreSQL that can be cut: as with a network, connections stay and nothing gets
// through, in both directions, until it is mended.
class CuttableLink {
 public:
  // `directory`: where clients find its socket; `server`: the directory of PostgreSQL's own.
  CuttableLink(const std::filesystem::path& directory, const std::filesystem::path& server)
      : server_(server / kSocket) {
    std::filesystem::create_directories(directory);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = Address(directory / kSocket);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_, 64) != 0) {
      throw std::runtime_error("cannot listen in " + directory.string());
    }
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~CuttableLink() {
    stop_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int fd : sockets_) ::shutdown(fd, SHUT_RDWR);
    for (std::thread& pump : pumps_) pump.join();
    for (const int fd : sockets_) ::close(fd);
    ::close(listener_);
  }
  CuttableLink(const CuttableLink&) = delete;
  CuttableLink& operator=(const CuttableLink&) = delete;

  void Cut() { cut_ = true; }
  void Mend() { cut_ = false; }

 private:
  static constexpr const char* kSocket = ".s.PGSQL.5432";

  static sockaddr_un Address(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.string().size() >= sizeof(address.sun_path)) throw std::runtime_error("long path");
    std::strcpy(address.sun_path, path.c_str());  // NOLINT(clang-analyzer-security.insecureAPI)
    return address;
  }
  void Accept() {
    while (!stop_) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_un address = Address(server_);
      sockets_.insert(sockets_.end(), {client, server});
      if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        ::shutdown(client, SHUT_RDWR);
        continue;
      }
      pumps_.emplace_back([this, client, server] { Pump(client, server); });
      pumps_.emplace_back([this, client, server] { Pump(server, client); });
    }
  }
  void Pump(int from, int to) const {
    char buffer[1 << 16];
    ssize_t got = 0;
    while ((got = ::recv(from, buffer, sizeof(buffer), 0)) > 0) {
      while (cut_ && !stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t more =
            ::send(to, buffer + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
        if (more <= 0) break;
        sent += more;
      }
    }
    ::shutdown(to, SHUT_RDWR);
  }

  const std::filesystem::path server_;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cut_{false};
  std::vector<int> sockets_;        // of the acceptor, until it has ended
  std::vector<std::thread> pumps_;  // the same
  std::thread acceptor_;
};

}  // namespace codband
