#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband::server {

// Files of what happened before, sent to a server in batches (POST /v1/history).

enum class HistoryFormat {
  kCsv,     // a header; the columns user, item, reward and, if there, time
  kNdjson,  // {"userId", "itemId", "value", "features"?, "time"?} on each line
  kDsjson,  // decisions as Vowpal Wabbit's services log them: the action taken, minus its cost
};

struct HistoryFileOptions {
  std::string file;
  HistoryFormat format = HistoryFormat::kCsv;
  std::string user = "user";  // columns of a CSV
  std::string item = "item";
  std::string reward = "reward";
  std::string time = "time";
  std::string user_field = "User.id";               // DSJSON: path of the user in "c"
  std::string server = {};                          // which one it is sent to, whatever names it
  std::size_t batch = 500;                          // events of a request
  std::function<void(double share)> progress = {};  // the share done since the last call
};

struct HistoryFileReport {
  std::size_t records = 0;     // in the file
  std::size_t resumed = 0;     // of them, sent by an earlier run
  std::size_t accepted = 0;    // learned now
  std::size_t duplicates = 0;  // learned before
  std::size_t left_out = 0;    // unusable, here or on the server
  std::vector<std::string> problems =
      {};  // the first ten of those: "file:12: value = x, expected …"
};

// Sends a body to POST /v1/history; its reply's body.
using PostHistory = std::function<Result<std::string>(const std::string& body)>;

// Sends the file from where an earlier run to the same server ended: FILE.imported tells how many
// records were sent, and to whom, and stays there. Event ids are made of a record and its number,
// so that a batch that was sent twice is learned once. kInvalidArgument if FILE.imported is not of
// this file.
Result<HistoryFileReport> SendHistoryFile(const HistoryFileOptions& options,
                                          const PostHistory& post);

}  // namespace codband::server
