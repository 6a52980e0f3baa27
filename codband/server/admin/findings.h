#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codband/base/status.h"

namespace codband::server {

// One thing that was examined in a data directory.
struct Finding {
  std::string part;
  bool sound = true;
  std::string text;  // what is there, or what is wrong
};

// Examines a data directory without changing it: whether it opens, checksums, its identity, the
// last checkpoint, what every table holds, whether the models add up to their users. Goes on as far
// as it can when something is wrong. A server may be running on the directory. kNotFound if there
// is no data. Slow: reads everything.
Result<std::vector<Finding>> ExamineData(const std::filesystem::path& data);

// kCheckFailed with the first finding that is not sound, if any.
Status CheckSound(const std::filesystem::path& data, const std::vector<Finding>& findings);

}  // namespace codband::server
