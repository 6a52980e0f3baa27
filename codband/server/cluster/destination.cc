#include "codband/server/cluster/destination.h"

#include <fmt/format.h>

#include "codband/base/parse.h"
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

Destination OfEvent(std::string event, const ClusterDirectory& directory) {
  const auto made_by = engine::PartitionOfEvent(event);
  if (made_by && *made_by < directory.partitions()) return OfPartition(*made_by);
  return {.kind = Destination::Kind::kEvent, .event = std::move(event)};
}

// A ranking belongs to its user's partition; an anonymous one anywhere, but the same event always
// to the same.
Destination OfRank(const engine::RankRequest& request, const ClusterDirectory& directory) {
  const bool named = !request.event_id.empty();
  if (!request.user.empty()) return OfPartition(directory.PartitionOfUser(request.user), named);
  if (named) return OfPartition(directory.PartitionOfUser(request.event_id));
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
  if (operation == "metrics" || operation == "ready") return {.kind = Destination::Kind::kNode};
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
    const auto request = ParseRank(parser, call.body, dim, user_from);
    return request.ok() ? OfRank(request.value(), directory) : Destination();
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

std::string ForwardedTo(const Destination& destination) {
  switch (destination.kind) {
    case Destination::Kind::kPartition:
      return fmt::format("partition {}", destination.partition);
    case Destination::Kind::kEvent:
      return "event";
    default:
      return "any";
  }
}

std::optional<Destination> ReadForwardedTo(std::string_view text) {
  constexpr std::string_view kPartition = "partition ";
  if (text == "any") return Destination();
  if (text == "event") return Destination{.kind = Destination::Kind::kEvent};
  if (!text.starts_with(kPartition)) return std::nullopt;
  const auto partition = ParseNumber<store::Partition>(text.substr(kPartition.size()));
  if (!partition) return std::nullopt;
  return OfPartition(*partition);
}

}  // namespace codband::server
