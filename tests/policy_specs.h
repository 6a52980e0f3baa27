#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codband/policy/registry.h"

namespace codband {

// A spec as part of a file name or of a test name.
inline std::string SpecAsName(std::string spec, char separator) {
  std::replace_if(
      spec.begin(), spec.end(), [](char c) { return c == ':' || c == '-'; }, separator);
  return spec;
}

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOfSpec(const testing::TestParamInfo<std::string>& param) {
  return SpecAsName(param.param, '_');
}

}  // namespace codband
