#pragma once

#include <string>
#include <vector>

#include "codband/server/admin/findings.h"

namespace codband::cli {

// The findings as a text table, one row each.
std::string FindingsText(const std::vector<server::Finding>& findings);

}  // namespace codband::cli
