#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/policy/params.h"
#include "codband/policy/policy.h"

namespace codband {

// A policy's state in bytes: an envelope (magic, format version, who wrote it, the policy's spec,
// dimension, length and checksum) around Policy::SaveState. Save → load → continue is
// bit-identical to not stopping.

// Incremented whenever the meaning of any byte changes. States since kOldestStateFormat can be
// read.
inline constexpr std::uint32_t kStateFormatVersion = 8;
inline constexpr std::uint32_t kOldestStateFormat = 3;

std::string EncodeState(const Policy& policy);

// Makes the policy that the bytes describe; it grows to `context.dim` if that is more.
// kCorruption says what is damaged and where; no input can crash it.
Result<std::unique_ptr<Policy>> DecodeState(std::string_view bytes, const PolicyContext& context);

// The same to and from a file. Writing replaces the file as a whole, durably: after a crash the
// file holds either the old state or the new one.
Status WriteStateFile(const Policy& policy, const std::filesystem::path& path);
Result<std::unique_ptr<Policy>> ReadStateFile(const std::filesystem::path& path,
                                              const PolicyContext& context);

}  // namespace codband
