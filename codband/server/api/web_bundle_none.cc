// Stands in for the dashboard where the program was built without Node.js.
#include "codband/server/api/web_bundle.h"

namespace codband::server {

const WebFile kWebPage = {
    .plain =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<title>codband</title></head><body><h1>codband</h1>"
        "<p>This program was built without its dashboard: Node.js and npm were missing. The "
        "API is here all the same: <a href=\"/openapi.json\">/openapi.json</a>, "
        "<a href=\"/metrics\">/metrics</a>.</p></body></html>\n",
    .gzip = {}};
const WebFile kWebScript = {};
const WebFile kWebStyle = {};
const WebFile kWebIcon = {};

}  // namespace codband::server
