#include "codband/engine/sightings.h"

#include "codband/base/bytes.h"
#include "codband/engine/records.h"

namespace codband::engine {
namespace {

constexpr std::string_view kAfterPrefix = "sighting0";  // '0' follows '/'

}  // namespace

Status Sightings::Load(const store::Store& store) {
  return store.Scan(store::Table::kMeta, std::string(kPrefix), std::string(kAfterPrefix),
                    [&](std::string_view key, std::string_view value) {
                      const auto index = ReadNumberKey(key.substr(kPrefix.size()));
                      if (!index.ok() || index.value() >= kSlots) return true;
                      ByteReader in(value);
                      Slot slot;
                      slot.name = in.U32("hash of a name");
                      slot.user = in.U32("hash of a user");
                      slot.users = in.U8("number of users");
                      slot.decisions = in.U8("number of decisions");
                      in.ExpectEnd();
                      if (in.ok()) slots_[index.value()] = slot;
                      return true;
                    });
}

bool Sightings::Count(features::Side side, std::string_view name, UserId user,
                      store::StoreBatch& batch, Often enough) {
  std::string text(1, static_cast<char>(side));
  text.append(name);
  const std::uint64_t hash = SipHash(key_, text);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const auto who = static_cast<std::uint32_t>(SipHash(key_, NumberKey(user)));
  const std::size_t index = hash % kSlots;
  Slot& slot = slots_[index];
  before_.emplace_back(index, slot);
  bool often = false;
  if (slot.decisions == 0) {
    slot = {.name = tag, .user = who, .users = 1, .decisions = 1};
  } else if (slot.name != tag) {
    if (--slot.decisions == 0) slot = {};
  } else {
    if (slot.decisions < kDecisions) ++slot.decisions;
    if (slot.user != who || user == kNobody) {
      ++slot.users;
      slot.user = who;
    }
    often = slot.users >= kUsers || (enough == Often::kBoth && slot.decisions >= kDecisions);
    if (often) slot = {};
  }
  ByteWriter out;
  out.U32(slot.name);
  out.U32(slot.user);
  out.U8(slot.users);
  out.U8(slot.decisions);
  batch.Put(store::Table::kMeta, std::string(kPrefix) + NumberKey(index), out.Take());
  return often;
}

void Sightings::Undo() {
  for (; !before_.empty(); before_.pop_back()) slots_[before_.back().first] = before_.back().second;
}

}  // namespace codband::engine
