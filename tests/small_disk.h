#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "codband/engine/engine_testing.h"

namespace codband {

// A disk that can be full: a small tmpfs in a mount namespace of the test's own.
class SmallDisk {
 public:
  // Gives `use` the disk. The test that calls this runs itself again inside the namespace.
  static void Run(const std::string& size,
                  const std::function<void(const std::filesystem::path&)>& use) {
    const engine::TempDirectory directory;
    if (std::getenv(kInside) != nullptr) {  // NOLINT(concurrency-mt-unsafe)
      ASSERT_EQ(::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()), 0)
          << std::strerror(errno);
      use(directory.path());
      ::umount2(directory.path().c_str(), MNT_DETACH);
      return;
    }
    const char* flags = ::geteuid() == 0 ? "-m" : "-rm";
    if (RunShell(fmt::format("unshare {} mount -t tmpfs -o size=1m tmpfs {} 2>/dev/null", flags,
                             directory.path().string())) != 0) {
      GTEST_SKIP() << "not permitted to mount a tmpfs: neither as root nor by unshare -rm";
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const int code =
        RunShell(fmt::format("{}=1 unshare {} '{}' --gtest_filter={}.{} --gtest_brief=1", kInside,
                             flags, self, test.test_suite_name(), test.name()));
    EXPECT_EQ(code, 0) << "failed in its namespace, see above";
  }

  static void Fill(const std::filesystem::path& disk) {
    const int fd =
        ::open((disk / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) continue;
    ::close(fd);
  }
  static void MakeRoom(const std::filesystem::path& disk) {
    std::filesystem::remove(disk / "filler");
  }

 private:
  static constexpr const char* kInside = "TEST_ON_A_SMALL_DISK";

  static int RunShell(const std::string& command) {
    const int status = std::system(command.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }
};

}  // namespace codband
