#include "codband/policy/state_file.h"

#include <fmt/format.h>

#include "codband/base/bytes.h"
#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::string_view kMagic = "codband\n";

}  // namespace

std::string EncodeState(const Policy& policy) {
  ByteWriter state;
  policy.SaveState(state);
  ByteWriter header;
  header.U32(kStateFormatVersion);
  header.String(fmt::format("codband {}", kVersion));
  header.String(policy.spec());
  header.U64(policy.dim());
  header.U64(state.bytes().size());
  std::string bytes(kMagic);
  bytes += header.bytes();
  bytes += state.bytes();
  ByteWriter checksum;
  checksum.U32(Crc32(bytes));
  return bytes + checksum.bytes();
}

Result<std::unique_ptr<Policy>> DecodeState(std::string_view bytes, const PolicyContext& context) {
  if (!bytes.starts_with(kMagic)) {
    return Status::Corruption("state: the first 8 bytes are not those of a codband state");
  }
  ByteReader in(bytes);
  for (std::size_t i = 0; i < kMagic.size(); ++i) (void)in.U8("magic");
  const std::uint32_t version = in.U32("format version");
  if (in.ok() && (version < kOldestStateFormat || version > kStateFormatVersion)) {
    return Status::Corruption(fmt::format("state: format version {}, this program reads {} to {}",
                                          version, kOldestStateFormat, kStateFormatVersion));
  }
  const std::string writer = in.String("writer");
  const std::string spec = in.String("policy");
  PolicyContext saved_context = context;
  saved_context.dim = in.U64("dimension");
  const std::uint64_t state_size = in.U64("state size");
  if (in.remaining() < sizeof(std::uint32_t) ||
      in.remaining() - sizeof(std::uint32_t) != state_size) {
    in.Fail("state", fmt::format("of {} bytes and a checksum expected, {} bytes are left",
                                 state_size, in.remaining()));
  }
  if (!in.ok()) return Status::Corruption("state: " + in.status().message());
  ByteReader checksum(bytes.substr(bytes.size() - sizeof(std::uint32_t)));
  bytes.remove_suffix(sizeof(std::uint32_t));
  if (checksum.U32("checksum") != Crc32(bytes)) {
    return Status::Corruption(fmt::format(
        "state: checksum of the {} bytes written by {} does not match", bytes.size(), writer));
  }
  auto policy = MakePolicy(spec, saved_context);
  if (!policy.ok()) return policy.status();
  ByteReader state(bytes.substr(bytes.size() - state_size));
  policy.value()->LoadState(state);
  state.ExpectEnd();
  if (!state.ok()) {
    return Status::Corruption(fmt::format("state of '{}': {}", spec, state.status().message()));
  }
  if (context.dim > policy.value()->dim()) policy.value()->Grow(context.dim);
  return policy;
}

Status WriteStateFile(const Policy& policy, const std::filesystem::path& path) {
  return WriteFileDurably(path, EncodeState(policy));
}

Result<std::unique_ptr<Policy>> ReadStateFile(const std::filesystem::path& path,
                                              const PolicyContext& context) {
  auto bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  auto policy = DecodeState(bytes.value(), context);
  if (policy.ok()) return policy;
  return Status(policy.status().code(),
                fmt::format("{}: {}", path.string(), policy.status().message()));
}

}  // namespace codband
