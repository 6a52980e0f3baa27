#pragma once

#include <string>

#include "codband/base/status.h"

namespace codband::report {

// Renders an SVG file as a PNG, at twice its nominal size, by running rsvg-convert; blocks until it
// ends. kUnavailable if the program is not installed, kIoError (with its output) if it fails; then
// `png_path` is unchanged. Safe from any thread.
Status WritePng(const std::string& svg_path, const std::string& png_path);

}  // namespace codband::report
