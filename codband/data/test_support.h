#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <Eigen/Dense>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "codband/data/hooks.h"
#include "codband/data/sparse_matrix.h"

namespace codband::data {

// A test with a temporary directory of its own.
class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() {
    std::string name = testing::TempDir() + "/codband_data_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~DirectoryTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path Write(std::string_view name, std::string_view content) const {
    const std::filesystem::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::filesystem::path directory_;
  WorkHooks hooks_;
  WorkPart part_{hooks_, 0, 1, "test"};
};

inline Eigen::MatrixXd DenseOf(const SparseMatrix& matrix) {
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(matrix.rows()),
                                                static_cast<Eigen::Index>(matrix.cols));
  for (std::size_t row = 0; row < matrix.rows(); ++row) {
    for (std::size_t e = 0; e < matrix.columns_of(row).size(); ++e) {
      dense(static_cast<Eigen::Index>(row), matrix.columns_of(row)[e]) += matrix.values_of(row)[e];
    }
  }
  return dense;
}

}  // namespace codband::data
