#pragma once

#include <string>

#include "codband/base/status.h"

namespace codband::report {

// Draws an SVG file as a PNG, at twice its nominal size, by running rsvg-convert; waits for it.
// kUnavailable if the program is not installed, kIoError (with what it said) if it fails; then
// `png_path` is left as it was. Safe from any thread.
Status WritePng(const std::string& svg_path, const std::string& png_path);

}  // namespace codband::report
