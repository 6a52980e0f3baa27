#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "codband/base/status.h"

struct pg_conn;

namespace codband::cluster {

// Connects to the server of a connection string that can be written. Its hosts are asked at the
// same time: one that is dead and does not even refuse delays nothing. `stop`: give up as soon as
// it is true. kInvalidArgument: the connection string cannot be read. kUnavailable: nobody accepts
// it, for whatever reason. The caller ends the connection by PQfinish.
Result<pg_conn*> ConnectToPrimary(const std::string& dsn, const std::atomic<bool>& stop);

// libpq's messages end with a line break and may have several lines.
std::string OneLine(std::string_view message);

}  // namespace codband::cluster
