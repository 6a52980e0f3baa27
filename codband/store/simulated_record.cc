#include "codband/store/simulated_record.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband::store {
namespace {

Status Taken(std::string_view what, std::string_view by) {
  return {StatusCode::kConflict, fmt::format("{} is held by '{}'", what, by)};
}

}  // namespace

SimulatedRecord::SimulatedRecord(Partition partitions, const Timers& time)
    : time_(time), rows_(partitions) {}

Status SimulatedRecord::CheckClaim(const Claim& claim) const {
  return rows_.at(claim.partition).epoch == claim.epoch ? Status() : Fenced(claim);
}

PartitionState SimulatedRecord::StateOf(Partition partition) const {
  const Row& row = rows_.at(partition);
  return {.partition = partition,
          .epoch = row.epoch,
          .owner = row.owner,
          .last_sequence = row.history.size(),
          .first_sequence = row.first_sequence,
          .lease_left_ms = row.owner.empty() ? 0 : row.lease_until_ms - now_ms(),
          .wanted = row.wanted};
}

Result<PartitionState> SimulatedRecord::Acquire(Partition partition, const std::string& node,
                                                std::int64_t lease_ms) {
  Row& row = rows_.at(partition);
  if (!row.owner.empty() && row.lease_until_ms > now_ms()) {
    return Taken(fmt::format("partition {}", partition), row.owner);
  }
  ++changes_;
  ++row.epoch;
  row.session = 0;
  row.owner = node;
  row.lease_until_ms = now_ms() + lease_ms;
  row.begins_after[row.epoch] = row.history.size();
  return StateOf(partition);
}

std::vector<Claim> SimulatedRecord::Renew(const std::vector<Claim>& claims, std::int64_t lease_ms) {
  std::vector<Claim> over;
  for (const Claim& claim : claims) {
    Row& row = rows_.at(claim.partition);
    if (row.epoch != claim.epoch) {
      over.push_back(claim);
    } else {
      row.lease_until_ms = now_ms() + lease_ms;
    }
  }
  return over;
}

Status SimulatedRecord::Release(const Claim& claim) {
  CODBAND_RETURN_IF_ERROR(CheckClaim(claim));
  Row& row = rows_.at(claim.partition);
  ++changes_;
  ++row.epoch;
  row.session = 0;
  row.owner.clear();
  row.begins_after[row.epoch] = row.history.size();
  return {};
}

Status SimulatedRecord::Append(const Claim& claim, std::uint64_t session, std::uint64_t sequence,
                               const std::string& frame) {
  CODBAND_RETURN_IF_ERROR(CheckClaim(claim));
  Row& row = rows_.at(claim.partition);
  if (row.session != session) return {StatusCode::kUnavailable, "the connection was given up"};
  if (sequence != row.history.size() + 1) {
    return Status::InvalidArgument(
        fmt::format("sequence: is {}, expected {}", sequence, row.history.size() + 1));
  }
  row.history.push_back({.sequence = sequence, .epoch = claim.epoch, .bytes = frame});
  return {};
}

SimulatedRecord::Resolved SimulatedRecord::Resolve(const Claim& claim, std::uint64_t sequence) {
  Row& row = rows_.at(claim.partition);
  const bool mine = row.epoch == claim.epoch;
  if (mine) ++row.session;
  const auto next = row.begins_after.upper_bound(claim.epoch);
  const std::uint64_t last = next == row.begins_after.end() ? row.history.size() : next->second;
  Resolved resolved{.session = row.session};
  if (last >= sequence) return resolved;
  resolved.status =
      mine ? Status(StatusCode::kUnavailable, "the connection was lost before the frame arrived")
           : Fenced(claim);
  return resolved;
}

Result<std::vector<LogFrame>> SimulatedRecord::Read(Partition partition, std::uint64_t from,
                                                    std::size_t most_bytes) const {
  const Row& row = rows_.at(partition);
  if (from < row.first_sequence) {
    return Status::NotFound(
        fmt::format("partition {}: frames below {} were truncated", partition, row.first_sequence));
  }
  std::vector<LogFrame> frames;
  std::size_t bytes = 0;
  for (std::uint64_t i = from; i <= row.history.size() && (bytes < most_bytes || frames.empty());
       ++i) {
    frames.push_back(row.history[i - 1]);
    bytes += frames.back().bytes.size();
  }
  return frames;
}

Status SimulatedRecord::Truncate(const Claim& claim, std::uint64_t below) {
  CODBAND_RETURN_IF_ERROR(CheckClaim(claim));
  Row& row = rows_.at(claim.partition);
  row.first_sequence = std::clamp(below, row.first_sequence, row.history.size() + 1);
  return {};
}

Status SimulatedRecord::PutBlob(const Claim& claim, const BlobId& id, const std::string& bytes) {
  CODBAND_RETURN_IF_ERROR(CheckClaim(claim));
  rows_.at(claim.partition).blobs[{id.name, id.version, id.part}] = bytes;
  return {};
}

Result<std::string> SimulatedRecord::GetBlob(Partition partition, const BlobId& id) const {
  const auto& blobs = rows_.at(partition).blobs;
  const auto found = blobs.find({id.name, id.version, id.part});
  if (found == blobs.end()) {
    return Status::NotFound(fmt::format("partition {}: there is no part {} of version {} of '{}'",
                                        partition, id.part, id.version, id.name));
  }
  return found->second;
}

Result<std::uint64_t> SimulatedRecord::FindBlob(Partition partition,
                                                const std::string& name) const {
  std::uint64_t newest = 0;
  bool found = false;
  for (const auto& [id, bytes] : rows_.at(partition).blobs) {
    if (std::get<0>(id) != name || std::get<2>(id) != 0) continue;
    newest = std::max(newest, std::get<1>(id));
    found = true;
  }
  if (found) return newest;
  return Status::NotFound(fmt::format("partition {}: there is no '{}'", partition, name));
}

std::vector<BlobPart> SimulatedRecord::ListBlobs(Partition partition) const {
  std::vector<BlobPart> parts;
  for (const auto& [id, bytes] : rows_.at(partition).blobs) {
    const auto& [name, version, part] = id;
    parts.push_back(
        {.id = {.name = name, .version = version, .part = part}, .bytes = bytes.size()});
  }
  return parts;
}

Status SimulatedRecord::DeleteBlobs(const Claim& claim, const std::string& name,
                                    std::uint64_t below) {
  CODBAND_RETURN_IF_ERROR(CheckClaim(claim));
  std::erase_if(rows_.at(claim.partition).blobs, [&](const auto& blob) {
    return std::get<0>(blob.first) == name && std::get<1>(blob.first) < below;
  });
  return {};
}

Status SimulatedRecord::AppendShared(std::uint64_t sequence, const std::string& frame) {
  if (sequence != shared_.size() + 1) {
    return {StatusCode::kConflict,
            fmt::format("sequence: is {}, expected {}", sequence, shared_.size() + 1)};
  }
  shared_.push_back(frame);
  ++changes_;
  return {};
}

std::vector<LogFrame> SimulatedRecord::ReadShared(std::uint64_t from,
                                                  std::size_t most_bytes) const {
  std::vector<LogFrame> frames;
  std::size_t bytes = 0;
  for (std::uint64_t i = from; i <= shared_.size() && (bytes < most_bytes || frames.empty()); ++i) {
    frames.push_back({.sequence = i, .bytes = shared_[i - 1]});
    bytes += frames.back().bytes.size();
  }
  return frames;
}

Status SimulatedRecord::Want(Partition partition, const std::string& node) {
  if (partition >= rows_.size()) {
    return Status::NotFound(fmt::format("there is no partition {}", partition));
  }
  rows_[partition].wanted = node;
  ++changes_;
  return {};
}

Status SimulatedRecord::SetDraining(const std::string& node, bool draining) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return Status::NotFound(fmt::format("there is no node '{}'", node));
  found->second.draining = draining;
  ++changes_;
  return {};
}

Status SimulatedRecord::KeepNode(const NodeState& node, std::int64_t lease_ms) {
  NodeState& row = nodes_[node.name];
  const bool fresh = row.instance != node.instance;
  if (fresh && !row.instance.empty() && row.lease_left_ms > now_ms()) {
    return Taken(fmt::format("the name '{}'", node.name), row.instance);
  }
  if (fresh || row.lease_left_ms <= now_ms()) ++changes_;
  const bool draining = node.draining || (!fresh && row.draining);
  row = node;
  row.draining = draining;
  row.lease_left_ms = now_ms() + lease_ms;
  return {};
}

Status SimulatedRecord::RemoveNode(const std::string& name, const std::string& instance) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.instance != instance) return {};
  ++changes_;
  nodes_.erase(found);
  return {};
}

std::vector<NodeState> SimulatedRecord::ListNodes() const {
  std::vector<NodeState> nodes;
  for (const auto& [name, row] : nodes_) {
    nodes.push_back(row);
    nodes.back().lease_left_ms -= now_ms();
  }
  return nodes;
}

std::vector<PartitionState> SimulatedRecord::ListPartitions() const {
  std::vector<PartitionState> states;
  for (Partition i = 0; i < rows_.size(); ++i) states.push_back(StateOf(i));
  return states;
}

}  // namespace codband::store
