#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace codband::server {

class ReplyStream;

// A reply in the making. Reused by a connection, so that its strings keep their memory.
struct Reply {
  int status = 200;
  std::string_view content_type = kJson;
  std::string body;
  std::string headers;  // additional ones: "Allow: GET\r\n"
  bool close = false;   // the connection cannot be kept alive
  // If there is one, the body has no end: what it gives follows, until the client is gone. Shared
  // only in that its type is known elsewhere.
  std::shared_ptr<ReplyStream> stream = {};

  static constexpr std::string_view kJson = "application/json";

  void Reset() {
    status = 200;
    content_type = kJson;
    body.clear();
    headers.clear();
    close = false;
    stream.reset();
  }
};

}  // namespace codband::server
