#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "codband/base/file.h"
#include "codband/server/http/http_client.h"
#include "tests/cli_testing.h"

namespace codband {

using Json = nlohmann::json;
using std::chrono::seconds;

// `codband serve` in the background, from its first line of output to its end.
class Serving {
 public:
  Serving(const std::string& log, const std::string& arguments, const std::string& environment = "")
      : log_(log) {
    const std::string command = "exec env " + environment + " " CODBAND_PROGRAM " serve " +
                                arguments + " >" + log + " 2>&1";
    std::filesystem::remove(log);  // of a server before this one
    pid_ = fork();
    if (pid_ == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Serving() {
    if (pid_ > 0) Stop(SIGKILL);
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  std::string output() const {
    const auto text = ReadFile(log_);
    return text.ok() ? text.value() : "";
  }

  // Waits for the text on its output; gives up when it has ended.
  bool WaitFor(const std::string& text) {
    while (output().find(text) == std::string::npos) {
      if (waitpid(pid_, &status_, WNOHANG) == pid_) {
        pid_ = -1;
        return output().find(text) != std::string::npos;
      }
      usleep(2000);
    }
    return true;
  }

  server::HttpUrl url() {
    EXPECT_TRUE(WaitFor("Stop it with")) << output();
    const std::string text = output();
    const std::size_t at = text.find("http://");
    EXPECT_NE(at, text.npos) << text;
    return server::ParseHttpUrl(text.substr(at, text.find_first_of(" \n", at) - at)).value();
  }

  server::HttpReply Send(const server::HttpRequest& request) {
    auto client = server::HttpClient::Connect(url(), seconds(60));
    EXPECT_TRUE(client.ok()) << client.status().message() << output();
    auto reply = client.value()->Send(request, seconds(60));
    EXPECT_TRUE(reply.ok()) << reply.status().message();
    return reply.value();
  }

  // Its exit code, or minus the signal that ended it.
  int Stop(int signal) {
    if (pid_ > 0) {
      kill(pid_, signal);
      waitpid(pid_, &status_, 0);
    }
    pid_ = -1;
    return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
  }

  pid_t pid() const { return pid_; }

 private:
  std::string log_;
  pid_t pid_ = -1;
  int status_ = 0;
};

class ServeCliTest : public CliTest {
 protected:
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string Arguments(const std::string& more = "") const {
    return "--data " + Path("data") + " --listen 127.0.0.1:0 --set features.dimension=4 " + more;
  }

  // Six items, and some visits of three users.
  static void Use(Serving& server) {
    for (int i = 0; i < 6; ++i) {
      const Json item{{"features", {1, i % 2, i % 3, 0}}, {"tags", {"t" + std::to_string(i % 2)}}};
      const server::HttpReply put = server.Send(
          {.method = "PUT", .target = "/v1/items/i" + std::to_string(i), .body = item.dump()});
      ASSERT_EQ(put.status / 100, 2U) << put.body;
    }
    for (int v = 0; v < 30; ++v) {
      const std::string event = "e" + std::to_string(v);
      const server::HttpReply rank = server.Send(
          {.method = "POST",
           .target = "/v1/rank",
           .body = Json{{"userId", "u" + std::to_string(v % 3)}, {"eventId", event}}.dump()});
      ASSERT_EQ(rank.status / 100, 2U) << rank.body;
      const server::HttpReply reward = server.Send({.method = "POST",
                                                    .target = "/v1/events/" + event + "/reward",
                                                    .body = Json{{"value", v % 2}}.dump()});
      ASSERT_EQ(reward.status / 100, 2U) << reward.body;
    }
  }

  // All that was learned, as text.
  std::string Exported(const std::string& data) const {
    const Outcome outcome = Run("export --data " + data);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
};

}  // namespace codband
