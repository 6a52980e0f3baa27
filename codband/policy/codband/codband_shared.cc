// Learning together with other partitions (shared_pool.h).
#include <fmt/format.h>

#include <algorithm>

#include "codband/base/check.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/codband/pool_merger.h"
#include "codband/policy/codband/pool_register.h"

namespace codband {
namespace {

// What follows is a partition's. No number of another state is like this.
constexpr std::uint64_t kPartitionFollows = 0xffff'9a27'ffff'9a27;

// Sums over fewer features, in which the others were 0.
void GrowSums(PoolSums& sums, std::size_t dim, bool intercept) {
  for (ModelSums& model : sums.models) model.data.Grow(dim, intercept);
}

}  // namespace

SharedPool* CoDBand::shared_pool() {
  return assignment_.model_prior().uses_recency() ? nullptr : this;
}

void CoDBand::SetPartition(std::uint32_t partition) {
  CODBAND_CHECK(partition < kMostPartitions);
  pool_.BePartition(partition);
  hyper_.BePartition();
}

std::string CoDBand::Publish(std::uint64_t version) {
  CODBAND_CHECK(pool_.is_partition());
  PoolRegister out{.partition = pool_.partition(),
                   .version = version,
                   .prior = hyper_.prior(),
                   .concentration = assignment_.concentration(),
                   .erasures = erasures_};
  ByteWriter groups;
  hyper_.SaveGroups(groups);
  out.groups = groups.Take();
  out.columns = hyper_.scales().Propose();
  std::optional<UserRecord> scratch;
  const UserRecord* nobody = users_.Peek(kNobody, scratch);
  if (nobody != nullptr) out.nobody = nobody->current.model;
  out.sums.models = pool_.OwnSums();
  out.sums.items = items_.OwnSums();
  out.sums.evidence = hyper_.OwnEvidence();
  out.sums.evidence.credits = assignment_.model_prior().OwnCredits();
  pool_.MarkPublished();
  return out.Encode();
}

Result<SharedPool::Merged> CoDBand::Merge(std::span<const std::string> registers,
                                          std::string_view previous) const {
  std::vector<PoolRegister> decoded;
  std::size_t dim = 0;
  for (const std::string& bytes : registers) {
    auto one = PoolRegister::Decode(bytes);
    if (!one.ok()) return one.status();
    dim = std::max(dim, one.value().prior.dim());
    decoded.push_back(std::move(one).value());
  }
  if (decoded.empty()) return Status::InvalidArgument("registers: none given, expected at least 1");
  std::ranges::sort(decoded, {}, &PoolRegister::partition);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (i > 0 && decoded[i].partition == decoded[i - 1].partition) {
      return Status::InvalidArgument(
          fmt::format("registers: two of partition {}, expected one", decoded[i].partition));
    }
    if (decoded[i].prior.dim() == dim) continue;
    GrowSums(decoded[i].sums, dim, options_.intercept);
    decoded[i].prior.Grow(dim, options_.intercept, decoded[i].prior.precision.front());
  }
  std::optional<PoolImport> before;
  if (!previous.empty()) {
    auto import = PoolImport::Decode(previous);
    if (!import.ok()) return import.status();
    before = std::move(import).value();
  }
  Merged merged;
  for (const PoolImport& import : MergePool(options_, decoded, before ? &*before : nullptr)) {
    merged.version = import.version;
    merged.imports.emplace(import.partition, import.Encode());
  }
  return merged;
}

std::size_t CoDBand::FeaturesOf(std::string_view pool) const {
  const std::size_t dim = PoolImport::DimOf(pool);
  return dim == 0 ? 0 : dim - (options_.intercept ? 1 : 0);
}

Status CoDBand::Import(std::string_view bytes) {
  auto decoded = PoolImport::Decode(bytes);
  if (!decoded.ok()) return decoded.status();
  PoolImport& pool = decoded.value();
  if (!pool_.is_partition() || pool.partition != pool_.partition()) {
    return Status::InvalidArgument(
        fmt::format("partition = {}, expected {}", pool.partition,
                    pool_.is_partition() ? fmt::format("{}", pool_.partition()) : "none"));
  }
  if (pool.prior.dim() > inner_dim()) {
    return Status::InvalidArgument(
        fmt::format("features = {}, expected at most {}", pool.prior.dim(), inner_dim()));
  }
  if (pool.version <= pool_version_) return {};
  if (pool.prior.dim() < inner_dim()) GrowSums(pool.others, inner_dim(), options_.intercept);
  restore_point_.End();
  const bool renamed = !(pool.aliases == pool_.aliases());
  hyper_.Import(pool.others.evidence,
                {.columns = pool.columns, .prior = pool.prior, .groups = pool.groups});
  assignment_.ImportCredits(pool.others.evidence.credits);
  pool_.Import(pool.others.models, pool.aliases, hyper_.prior());
  items_.Import(pool.others.items, pool.aliases);
  if (renamed) {
    users_.ForEach([&](UserId, UserRecord& user) { user.Translate(pool_.aliases()); });
  }
  pool_version_ = pool.version;
  return {};
}

void CoDBand::SavePartition(ByteWriter& out) const {
  if (!pool_.is_partition()) return;
  out.U64(kPartitionFollows);
  pool_.SavePartition(out);
  out.U64(pool_version_);
  out.U64(erasures_);
  hyper_.SavePartition(out);
  out.Doubles(assignment_.model_prior().others());
  items_.SaveOthers(out);
}

void CoDBand::LoadPartition(ByteReader& in) {
  if (!in.Skip(kPartitionFollows)) return;
  pool_.LoadPartition(in);
  pool_version_ = in.U64("version of a pool");
  erasures_ = in.U64("erasures");
  hyper_.LoadPartition(in);
  ModelPrior::Credits credits{};
  in.Doubles("credits of other partitions", credits);
  assignment_.ImportCredits(credits);
  items_.LoadOthers(in, pool_.aliases());
}

}  // namespace codband
