#include "codband/server/cluster/destination.h"

#include <optional>

#include "codband/base/string_hash.h"
#include "codband/engine/partition.h"
#include "codband/server/api/personalizer_json.h"
#include "codband/server/api/request_json.h"
#include "codband/server/cluster/erasures.h"

namespace codband::server {
namespace {

Destination OfPartition(store::Partition partition, bool repeatable = true) {
  return {.kind = Destination::Kind::kPartition, .partition = partition, .repeatable = repeatable};
}

// The partition that made the id up, if one did.
std::optional<store::Partition> MakerOf(std::string_view event, const ClusterDirectory& directory) {
  const auto maker = engine::PartitionOfEvent(event);
  return maker && *maker < directory.partitions() ? maker : std::nullopt;
}

Destination OfEvent(std::string event, const ClusterDirectory& directory) {
  const auto maker = MakerOf(event, directory);
  return {.kind = Destination::Kind::kEvent, .event = std::move(event), .maker = maker};
}

// A ranking belongs to its user's partition; an anonymous one anywhere, but the same event always
// to the same.
Destination OfRank(const engine::RankRequest& request, const ClusterDirectory& directory) {
  const bool named = !request.event_id.empty();
  if (!request.user.empty()) return OfPartition(directory.PartitionOfUser(request.user), named);
  if (named) {
    const auto maker = MakerOf(request.event_id, directory);
    return OfPartition(maker ? *maker : directory.PartitionOfUser(request.event_id));
  }
  return {.kind = Destination::Kind::kAny, .repeatable = false};
}

Destination OfId(const Call& call, const ClusterDirectory& directory, bool is_user) {
  auto id = DecodeId(call.match.raw_id);
  if (!id.ok()) return {};
  if (is_user) return OfPartition(directory.PartitionOfUser(id.value()));
  return OfEvent(std::move(id).value(), directory);
}

}  // namespace

Destination DestinationOf(const Call& call, const ClusterDirectory& directory, JsonParser& parser,
                          std::size_t dim, std::string_view user_from) {
  const std::string_view operation = call.match.route->operation;
  const std::string_view path = call.match.route->pattern;
  if (operation == "importHistory") return {.kind = Destination::Kind::kHistory};
  if (path.starts_with("/v1/users/")) return OfId(call, directory, true);
  if (operation == "getErasure") {
    const auto text = DecodeId(call.match.raw_id);
    const auto id = text.ok() ? ErasureId::Parse(text.value()) : std::nullopt;
    if (!id || id->partition >= directory.partitions()) return {};
    return OfPartition(id->partition);
  }
  if (path.find("/events/") != path.npos) return OfId(call, directory, false);
  if (operation == "rank") {
    const auto key = ParseRankKey(parser, call.body, user_from);
    return key.ok() ? OfRank(key.value(), directory) : Destination();
  }
  if (operation == "personalizerRank") {
    const auto request = ParsePersonalizerRank(parser, call.body, dim, user_from);
    return request.ok() ? OfRank(request.value(), directory) : Destination();
  }
  if (operation == "multiSlotRank") {
    const auto request = ParseMultiSlot(parser, call.body, dim, user_from, {});
    return request.ok() ? OfRank(request.value().shared, directory) : Destination();
  }
  return {};
}

}  // namespace codband::server
