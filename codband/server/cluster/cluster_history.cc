#include "codband/server/cluster/cluster_history.h"

#include <map>
#include <utility>

namespace codband::server {

Result<std::vector<HistoryPart>> SplitHistory(JsonParser& parser, std::string_view body,
                                              std::size_t dim, const ClusterDirectory& directory) {
  const auto events = ParseHistory(parser, body, dim);
  if (!events.ok()) return events.status();
  const auto object = parser.ParseObject(body);
  if (!object.ok()) return object.status();
  std::map<store::Partition, HistoryPart> parts;
  std::size_t place = 0;
  for (const dom::element event : dom::array(object.value()["events"])) {
    const store::Partition partition = directory.PartitionOfUser(events.value()[place].user);
    HistoryPart& part = parts[partition];
    part.partition = partition;
    part.body += part.body.empty() ? R"({"events":[)" : ",";
    part.body += simdjson::minify(event);
    part.places.push_back(place++);
  }
  std::vector<HistoryPart> all;
  for (auto& [partition, part] : parts) {
    part.body += "]}";
    all.push_back(std::move(part));
  }
  return all;
}

Status AddHistoryReply(JsonParser& parser, std::string_view reply, const HistoryPart& part,
                       HistoryOutcome& outcome) {
  const Status strange = Status::Corruption("a node has answered something else than expected");
  const auto object = parser.ParseObject(reply);
  if (!object.ok()) return strange;
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  dom::array skipped;
  if (object.value()["accepted"].get(accepted) != simdjson::SUCCESS ||
      object.value()["duplicates"].get(duplicates) != simdjson::SUCCESS ||
      object.value()["skipped"].get(skipped) != simdjson::SUCCESS) {
    return strange;
  }
  outcome.accepted += accepted;
  outcome.duplicates += duplicates;
  for (const dom::element each : skipped) {
    std::uint64_t index = 0;
    std::string_view reason;
    if (each["index"].get(index) != simdjson::SUCCESS || index >= part.places.size() ||
        each["reason"].get(reason) != simdjson::SUCCESS) {
      return strange;
    }
    outcome.skipped.push_back({part.places[index], std::string(reason)});
  }
  return {};
}

}  // namespace codband::server
