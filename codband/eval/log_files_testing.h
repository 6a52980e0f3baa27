#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "codband/base/file.h"
#include "codband/eval/log_reader.h"

namespace codband::eval {

// A directory for the files of one test. For tests only.
class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() {
    std::string name = testing::TempDir() + "/codband_log_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~LogFilesTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& content) const {
    std::string path = directory_ + "/" + name;
    EXPECT_TRUE(WriteFileDurably(path, content).ok());
    return path;
  }

  std::string directory_;
};

}  // namespace codband::eval
