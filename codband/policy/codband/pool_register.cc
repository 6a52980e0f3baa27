#include "codband/policy/codband/pool_register.h"

#include "codband/linalg/packed.h"
#include "codband/policy/shared_pool.h"

namespace codband {
namespace {

constexpr std::uint32_t kRegisterMagic = 0x52424443;  // "CDBR"
constexpr std::uint32_t kImportMagic = 0x50424443;    // "CDBP"
constexpr std::uint32_t kFormat = 1;

void StartBytes(std::uint32_t magic, ByteWriter& out) {
  out.U32(magic);
  out.U32(kFormat);
}

void ExpectStart(std::uint32_t magic, ByteReader& in) {
  if (in.U32("kind") != magic) in.Fail("kind", "is another one");
  if (in.U32("format") != kFormat) in.Fail("format", "is another one");
}

// The checksum stands at the end.
std::string Seal(ByteWriter& out) {
  const std::uint32_t sum = Crc32(out.bytes());
  out.U32(sum);
  return out.Take();
}

Result<std::string_view> Unseal(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint32_t)) return Status::Corruption("bytes end too early");
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof(std::uint32_t));
  ByteReader end(bytes.substr(content.size()));
  if (end.U32("checksum") != Crc32(content)) return Status::Corruption("checksum does not match");
  return content;
}

void SavePrior(const linalg::LinearPrior& prior, ByteWriter& out) {
  out.U32(static_cast<std::uint32_t>(prior.dim()));
  out.Double(prior.noise_variance);
  out.Doubles(prior.precision);
  out.Doubles(prior.mean);
}

linalg::LinearPrior LoadPrior(ByteReader& in) {
  const std::uint32_t dim = in.U32("number of features");
  if (dim == 0 || dim > linalg::kMaxDimension) {
    in.Fail("number of features", "is out of range");
    return {};
  }
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(dim, 1, 1);
  prior.noise_variance = in.Double("noise variance");
  in.Doubles("prior precision", prior.precision);
  in.Doubles("prior mean", prior.mean);
  if (in.ok() && !prior.IsValid()) in.Fail("prior", "is not valid");
  return prior;
}

}  // namespace

void PoolSums::Save(ByteWriter& out) const {
  out.U64(models.size());
  for (const ModelSums& model : models) {
    out.U64(model.id);
    out.U64(model.periods);
    out.U64(model.users);
    model.data.Save(out);
  }
  ItemSums::Save(items, out);
  evidence.Save(out);
}

void PoolSums::Load(ByteReader& in, std::size_t dim) {
  const std::size_t count = in.Count("number of models", linalg::SufficientStats::SavedBytes(dim));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    ModelSums model{.id = in.U64("model id"), .data = linalg::SufficientStats(dim)};
    model.periods = in.U64("model periods");
    model.users = in.U64("model users");
    model.data.Load(in);
    if (!models.empty() && model.id <= models.back().id) in.Fail("model id", "is out of order");
    if (model.periods == 0) in.Fail("model periods", "are none");
    models.push_back(std::move(model));
  }
  items = ItemSums::Load(in);
  evidence.Load(in);
}

std::string PoolRegister::Encode() const {
  ByteWriter out;
  StartBytes(kRegisterMagic, out);
  out.U32(partition);
  out.U64(version);
  SavePrior(prior, out);
  out.String(groups);
  ColumnScales::SaveProposals(columns, out);
  out.Double(concentration);
  out.U64(erasures);
  out.U64(nobody);
  sums.Save(out);
  return Seal(out);
}

Result<PoolRegister> PoolRegister::Decode(std::string_view bytes) {
  const auto content = Unseal(bytes);
  if (!content.ok()) return content.status();
  ByteReader in(content.value());
  ExpectStart(kRegisterMagic, in);
  PoolRegister out{.partition = in.U32("partition")};
  if (out.partition >= SharedPool::kMostPartitions) in.Fail("partition", "is out of range");
  out.version = in.U64("version of a register");
  out.prior = LoadPrior(in);
  if (!in.ok()) return in.status();
  out.groups = in.String("groups of columns");
  out.columns = ColumnScales::LoadProposals(in);
  out.concentration = in.Double("concentration");
  if (!(out.concentration > 0)) in.Fail("concentration", "is not positive");
  out.erasures = in.U64("erasures");
  out.nobody = in.U64("model of nobody");
  out.sums.Load(in, out.prior.dim());
  in.ExpectEnd();
  if (!in.ok()) return in.status();
  return out;
}

std::string PoolImport::Encode() const {
  ByteWriter out;
  StartBytes(kImportMagic, out);
  out.U32(partition);
  out.U64(version);
  out.U64(vector.size());
  for (const auto& [of, at] : vector) {
    out.U32(of);
    out.U64(at);
  }
  out.U64(erasures);
  SavePrior(prior, out);
  out.String(groups);
  ColumnScales::SaveProposals(columns, out);
  aliases.Save(out);
  others.Save(out);
  return Seal(out);
}

PoolImport PoolImport::LoadHead(ByteReader& in) {
  ExpectStart(kImportMagic, in);
  PoolImport out{.partition = in.U32("partition")};
  out.version = in.U64("version of a pool");
  out.vector.resize(in.Count("number of registers", sizeof(std::uint32_t) + sizeof(std::uint64_t)));
  for (auto& [of, at] : out.vector) {
    of = in.U32("partition of a register");
    at = in.U64("version of a register");
  }
  out.erasures = in.U64("erasures");
  out.prior = LoadPrior(in);
  return out;
}

std::size_t PoolImport::DimOf(std::string_view bytes) {
  const auto content = Unseal(bytes);
  if (!content.ok()) return 0;
  ByteReader in(content.value());
  const PoolImport head = LoadHead(in);
  return in.ok() ? head.prior.dim() : 0;
}

Result<PoolImport> PoolImport::Decode(std::string_view bytes) {
  const auto content = Unseal(bytes);
  if (!content.ok()) return content.status();
  ByteReader in(content.value());
  PoolImport out = LoadHead(in);
  if (!in.ok()) return in.status();
  out.groups = in.String("groups of columns");
  out.columns = ColumnScales::LoadProposals(in);
  out.aliases.Load(in);
  out.others.Load(in, out.prior.dim());
  in.ExpectEnd();
  if (!in.ok()) return in.status();
  return out;
}

Result<bool> RegisterShelf::Put(std::string bytes) {
  const auto decoded = PoolRegister::Decode(bytes);
  if (!decoded.ok()) return decoded.status();
  const std::uint64_t version = decoded.value().version;
  const auto [entry, is_new] = entries_.try_emplace(decoded.value().partition);
  if (!is_new && version <= entry->second.version) return false;
  entry->second = {.version = version, .bytes = std::move(bytes)};
  return true;
}

std::vector<std::string> RegisterShelf::registers() const {
  std::vector<std::string> out;
  for (const auto& [partition, entry] : entries_) out.push_back(entry.bytes);
  return out;
}

}  // namespace codband
