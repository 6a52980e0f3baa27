#pragma once

#include <string_view>

namespace codband::server {

// The dashboard, made from web/ and put into the program by the build: web/build.mjs writes it.
struct WebFile {
  std::string_view plain;
  std::string_view gzip;  // the same, compressed
};
extern const WebFile kWebPage;    // GET /
extern const WebFile kWebScript;  // GET /app.js
extern const WebFile kWebStyle;   // GET /app.css
extern const WebFile kWebIcon;    // GET /icon.svg

}  // namespace codband::server
