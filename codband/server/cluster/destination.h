#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/server/api/json_value.h"
#include "codband/server/cluster/cluster_directory.h"
#include "codband/server/http/service.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// Which partition a request is for.
struct Destination {
  enum class Kind {
    kNode,       // this node itself, whatever it has
    kAny,        // any partition
    kPartition,  // this one
    kEvent,      // the one that has this event
    kHistory,    // several: what happened to several users
  };
  Kind kind = Kind::kAny;
  store::Partition partition = 0;  // kPartition
  std::string event = {};          // kEvent
  // kEvent: the one that made the id up has it, unless the loop has other partitions since.
  std::optional<store::Partition> maker = {};
  // Whether it may be sent again if nobody knows what has become of it.
  bool repeatable = true;
};

// Reads as much of the request as it takes. A request that is wrong may go anywhere: whoever gets
// it says what is wrong.
Destination DestinationOf(const Call& call, const ClusterDirectory& directory, JsonParser& parser,
                          std::size_t dim, std::string_view user_from);

}  // namespace codband::server
