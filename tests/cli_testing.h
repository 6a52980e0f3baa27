#pragma once

// Runs the real program with its command line.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "codband/base/file.h"

namespace codband {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class CliTest : public testing::Test {
 protected:
  CliTest() {
    std::string name = testing::TempDir() + "/codband_cli_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~CliTest() override { std::filesystem::remove_all(directory_); }

  // `before`: shell text in front of the program, such as an assignment or a wrapper.
  Outcome Run(const std::string& arguments, const std::string& before = "") const {
    const std::string errors = directory_ + "/stderr";
    const std::string command = before + " " + CODBAND_PROGRAM + " " + arguments + " 2>" + errors;
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
      outcome.out.append(buffer.data(), got);
    }
    outcome.exit_code = WEXITSTATUS(pclose(pipe));
    outcome.err = ReadFile(errors).value();
    return outcome;
  }

  std::string directory_;
};

}  // namespace codband
