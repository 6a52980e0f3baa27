#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/api/history_json.h"
#include "codband/server/api/json_value.h"
#include "codband/server/cluster/cluster_directory.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// The events of a request of history that are of users of one partition, as a request of its own.
struct HistoryPart {
  store::Partition partition = 0;
  std::string body = {};
  std::vector<std::size_t> places = {};  // of its events in the whole request
};

// In the order of partitions; within one in the order of the request. Errors are those of the whole
// request, as ParseHistory has them.
Result<std::vector<HistoryPart>> SplitHistory(JsonParser& parser, std::string_view body,
                                              std::size_t dim, const ClusterDirectory& directory);

// Adds the reply to a part (AppendHistoryReply) to the outcome of the whole. kCorruption if it is
// none.
Status AddHistoryReply(JsonParser& parser, std::string_view reply, const HistoryPart& part,
                       HistoryOutcome& outcome);

}  // namespace codband::server
