#include "codband/features/column_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace codband::features {
namespace {

// Independent hashes of a column as the first and as the second of a pair.
constexpr std::uint64_t kAsItem = 0x6974656d;
constexpr std::uint64_t kAsOther = 0x6f74686572;

std::uint64_t Mixed(std::uint64_t hash, std::uint64_t seed) {
  return XXH3_64bits_withSeed(&hash, sizeof(hash), seed);
}

double SignOf(std::uint64_t hash) { return (hash >> 63) == 0 ? 1.0 : -1.0; }

// On disk a name that a request gave to an item has this in place of its side.
constexpr std::uint8_t kItemOfRequest = 3;

Source SourceOf(Side side, Source source) {
  return side == Side::kItem ? source : Source::kRequest;
}

Source SourceOf(const ColumnSpace::Addition& addition) {
  return SourceOf(addition.side, addition.described ? Source::kRequest : Source::kCatalogue);
}

std::uint64_t HashOf(Side side, std::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), static_cast<std::uint64_t>(side));
}

}  // namespace

void Compact(Cells& cells) {
  std::ranges::stable_sort(cells, {}, &Cell::column);
  std::size_t size = 0;
  for (const Cell& cell : cells) {
    if (size > 0 && cells[size - 1].column == cell.column) {
      cells[size - 1].value += cell.value;
    } else {
      cells[size++] = cell;
    }
  }
  cells.resize(size);
}

std::string ColumnSpace::Key(Side side, std::string_view name) {
  std::string key(1, static_cast<char>('0' + static_cast<int>(side)));
  return key.append(name);
}

std::optional<std::uint32_t> ColumnSpace::Find(Side side, std::string_view name) const {
  const auto found = by_name_.find(Key(side, name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> ColumnSpace::FindCrossing(std::uint32_t item,
                                                       std::uint32_t other) const {
  const auto found = by_pair_.find(PairKey(item, other));
  if (found == by_pair_.end()) return std::nullopt;
  return found->second;
}

bool ColumnSpace::FindSharer(Side side, std::string_view name) const {
  return sharer_by_name_.contains(Key(side, name));
}

std::size_t ColumnSpace::Taken(const ColumnLimits& limits) const {
  const std::size_t of_catalogue = by_name_.size() - requested_;
  return own() + limits.reserved - std::min(limits.reserved, of_catalogue);
}

std::optional<ColumnSpace::Place> ColumnSpace::PlaceOf(Side side, std::string_view name,
                                                       const ColumnLimits& limits,
                                                       Source source) const {
  if (const auto own = Find(side, name)) return Place{.column = *own};
  if (HasRoom(limits, SourceOf(side, source)) || !shares()) return std::nullopt;
  const std::uint64_t hash = HashOf(side, name);
  return Place{.column = static_cast<std::uint32_t>(shared_first_ + hash % shared_size_),
               .sign = SignOf(hash)};
}

std::optional<ColumnSpace::Place> ColumnSpace::CrossingPlace(std::uint32_t item,
                                                             std::uint32_t other,
                                                             const ColumnLimits& limits) const {
  if (const auto own = FindCrossing(item, other)) return Place{.column = *own};
  const bool named = columns_[item].kind == Kind::kName && columns_[other].kind == Kind::kName;
  if (!shares() || (named && HasRoomForCrossings(limits))) return std::nullopt;
  const std::uint64_t first = Mixed(columns_[item].hash, kAsItem);
  const std::uint64_t second = Mixed(columns_[other].hash, kAsOther);
  const std::size_t place = (first % shared_size_ + second % shared_size_) % shared_size_;
  return Place{.column = static_cast<std::uint32_t>(shared_first_ + place),
               .sign = SignOf(first) * SignOf(second)};
}

std::string ColumnSpace::NameOf(std::size_t column) const {
  const Column& each = columns_.at(column);
  switch (each.kind) {
    case Kind::kCrossing:
      return fmt::format("{} × {}", NameOf(each.item), NameOf(each.other));
    case Kind::kShared:
      return fmt::format("shared {}", column - shared_first_);
    default:
      return each.name;
  }
}

bool ColumnSpace::IsPlace(std::size_t column) const {
  return columns_[column].kind == Kind::kName && IsPlaceName(columns_[column].name);
}

void ColumnSpace::Add(const Addition& addition) {
  const auto index = static_cast<std::uint32_t>(columns_.size());
  switch (addition.kind) {
    case Kind::kName:
      by_name_.emplace(Key(addition.side, addition.name), index);
      if (SourceOf(addition) == Source::kRequest) ++requested_;
      columns_.push_back({.kind = Kind::kName,
                          .side = addition.side,
                          .source = SourceOf(addition),
                          .name = addition.name,
                          .hash = HashOf(addition.side, addition.name)});
      break;
    case Kind::kCrossing:
      by_pair_.emplace(PairKey(addition.item, addition.other), index);
      columns_.push_back({.kind = Kind::kCrossing,
                          .side = columns_[addition.other].side,
                          .item = addition.item,
                          .other = addition.other});
      break;
    case Kind::kShared:
      shared_first_ = index;
      shared_size_ = addition.count;
      for (std::uint64_t i = 0; i < addition.count; ++i) {
        columns_.push_back({.kind = Kind::kShared, .hash = Mixed(i, 0)});
      }
      break;
    case Kind::kSharer:
      sharer_by_name_.emplace(Key(addition.side, addition.name), sharers_.size());
      sharers_.push_back({.side = addition.side, .name = addition.name});
      break;
  }
}

void ColumnSpace::AddAndTell(Addition addition, std::vector<Addition>& added) {
  Add(addition);
  added.push_back(std::move(addition));
}

void ColumnSpace::Admit(Side side, std::string_view name, const ColumnLimits& limits,
                        std::vector<Addition>& added, Source source) {
  if (Find(side, name)) return;
  if (HasRoom(limits, SourceOf(side, source))) {
    return AddAndTell({.kind = Kind::kName,
                       .side = side,
                       .described = side == Side::kItem && source == Source::kRequest,
                       .name = std::string(name)},
                      added);
  }
  OpenShared(limits, added);
  const bool listed = SourceOf(side, source) == Source::kRequest;
  List(side, listed ? Listed(name) : std::string(name), added);
}

void ColumnSpace::List(Side side, std::string_view name, std::vector<Addition>& added) {
  if (sharers_.size() >= kMostSharers || FindSharer(side, name)) return;
  AddAndTell({.kind = Kind::kSharer, .side = side, .name = std::string(name)}, added);
}

void ColumnSpace::AdmitCrossing(std::uint32_t item, std::uint32_t other, const ColumnLimits& limits,
                                std::vector<Addition>& added) {
  CODBAND_CHECK(item < columns_.size() && other < columns_.size());
  if (FindCrossing(item, other)) return;
  const bool named = columns_[item].kind == Kind::kName && columns_[other].kind == Kind::kName;
  if (named && HasRoomForCrossings(limits)) {
    return AddAndTell({.kind = Kind::kCrossing, .item = item, .other = other}, added);
  }
  if (!IsPlace(item)) OpenShared(limits, added);
}

void ColumnSpace::OpenShared(const ColumnLimits& limits, std::vector<Addition>& added) {
  if (shares()) return;
  AddAndTell({.kind = Kind::kShared, .count = static_cast<std::uint32_t>(limits.shared())}, added);
}

void ColumnSpace::AdmitLike(const Addition& addition, const ColumnLimits& limits,
                            std::vector<Addition>& added) {
  switch (addition.kind) {
    case Kind::kName:
      return Admit(addition.side, addition.name, limits, added, SourceOf(addition));
    case Kind::kCrossing:
      if (addition.item >= size() || addition.other >= size()) return;
      return AdmitCrossing(addition.item, addition.other, limits, added);
    case Kind::kShared:
      return OpenShared(limits, added);
    case Kind::kSharer:
      return List(addition.side, addition.name, added);
  }
}

void ColumnSpace::ForgetName(std::uint32_t column) {
  std::string name = fmt::format("forgotten column {}", column);
  while (Find(columns_.at(column).side, name)) name += '\'';
  Rename(column, std::move(name));
}

void ColumnSpace::Rename(std::uint32_t column, std::string name) {
  Column& each = columns_.at(column);
  CODBAND_CHECK(each.kind == Kind::kName && !Find(each.side, name));
  by_name_.erase(Key(each.side, each.name));
  by_name_.emplace(Key(each.side, name), column);
  each.hash = HashOf(each.side, name);
  each.name = std::move(name);
}

Status ColumnSpace::Append(const Addition& addition) {
  const auto bad = [](std::string_view what) {
    return Status::Corruption(fmt::format("a column cannot be added: {}", what));
  };
  const std::size_t fresh = addition.kind == Kind::kShared   ? addition.count
                            : addition.kind == Kind::kSharer ? 0
                                                             : 1;
  const ColumnLimits most{.columns = ColumnLimits::kMost};
  if (columns_.size() + fresh > most.all()) return bad("there are too many");
  switch (addition.kind) {
    case Kind::kName:
      if (addition.name.size() > kMaxNameBytes) return bad("its name is too long");
      if (Find(addition.side, addition.name)) return bad("its name has one");
      break;
    case Kind::kCrossing:
      if (addition.item >= size() || addition.other >= size()) return bad("no such column");
      if (columns_[addition.item].kind != Kind::kName ||
          columns_[addition.other].kind != Kind::kName) {
        return bad("only names are crossed");
      }
      if (FindCrossing(addition.item, addition.other)) return bad("the crossing has one");
      break;
    case Kind::kShared:
      if (shares() || addition.count == 0) return bad("the shared ones are there");
      break;
    case Kind::kSharer:
      if (addition.name.size() > kMaxNameBytes) return bad("its name is too long");
      if (sharers_.size() >= kMostSharers || FindSharer(addition.side, addition.name)) {
        return bad("the name that shares is known");
      }
      break;
  }
  Add(addition);
  return {};
}

void ColumnSpace::ReturnTo(const Mark& mark) {
  for (; sharers_.size() > mark.sharers; sharers_.pop_back()) {
    sharer_by_name_.erase(Key(sharers_.back().side, sharers_.back().name));
  }
  for (; columns_.size() > mark.columns; columns_.pop_back()) {
    const Column& last = columns_.back();
    if (last.kind == Kind::kName) {
      by_name_.erase(Key(last.side, last.name));
      if (last.source == Source::kRequest) --requested_;
    }
    if (last.kind == Kind::kCrossing) by_pair_.erase(PairKey(last.item, last.other));
    if (last.kind == Kind::kShared) shared_size_ = 0;
  }
}

std::vector<ColumnSpace::Addition> ColumnSpace::Additions() const {
  std::vector<Addition> all;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& each = columns_[i];
    if (each.kind == Kind::kShared) {
      all.push_back({.kind = Kind::kShared, .count = static_cast<std::uint32_t>(shared_size_)});
      i += shared_size_ - 1;
    } else if (each.kind == Kind::kCrossing) {
      all.push_back({.kind = Kind::kCrossing, .item = each.item, .other = each.other});
    } else {
      all.push_back({.kind = Kind::kName,
                     .side = each.side,
                     .described = each.side == Side::kItem && each.source == Source::kRequest,
                     .name = each.name});
    }
  }
  for (const Sharer& sharer : sharers_) {
    all.push_back({.kind = Kind::kSharer, .side = sharer.side, .name = sharer.name});
  }
  return all;
}

void SaveAdditions(ByteWriter& out, std::span<const ColumnSpace::Addition> additions) {
  out.U64(additions.size());
  for (const ColumnSpace::Addition& each : additions) {
    out.U8(static_cast<std::uint8_t>(each.kind));
    switch (each.kind) {
      case ColumnSpace::Kind::kName:
      case ColumnSpace::Kind::kSharer:
        out.U8(each.described ? kItemOfRequest : static_cast<std::uint8_t>(each.side));
        out.String(each.name);
        break;
      case ColumnSpace::Kind::kCrossing:
        out.U32(each.item);
        out.U32(each.other);
        break;
      case ColumnSpace::Kind::kShared:
        out.U32(each.count);
        break;
    }
  }
}

std::vector<ColumnSpace::Addition> LoadAdditions(ByteReader& in) {
  std::vector<ColumnSpace::Addition> additions;
  const std::size_t count = in.Count("number of new columns", 5);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    ColumnSpace::Addition& each = additions.emplace_back();
    const std::uint8_t kind = in.U8("kind of column");
    if (kind > static_cast<std::uint8_t>(ColumnSpace::Kind::kSharer)) {
      in.Fail("kind of column", fmt::format("is {}", kind));
      break;
    }
    each.kind = static_cast<ColumnSpace::Kind>(kind);
    if (each.kind == ColumnSpace::Kind::kCrossing) {
      each.item = in.U32("column of the item");
      each.other = in.U32("column of the context");
    } else if (each.kind == ColumnSpace::Kind::kShared) {
      each.count = in.U32("number of shared columns");
    } else {
      const std::uint8_t side = in.U8("side of a column");
      if (side > kItemOfRequest) in.Fail("side of a column", fmt::format("is {}", side));
      each.described = side == kItemOfRequest;
      each.side = each.described ? Side::kItem : static_cast<Side>(side);
      each.name = in.String("name of a column");
    }
  }
  return additions;
}

void Resolve(const ColumnSpace& space, const ColumnLimits& limits, Side side,
             std::span<const NamedFeature> named, Cells& cells, std::vector<NamedFeature>* unknown,
             Source source) {
  for (const NamedFeature& feature : named) {
    if (const auto place = space.PlaceOf(side, feature.name, limits, source)) {
      cells.push_back({.column = place->column, .value = place->sign * feature.value});
    } else if (unknown != nullptr) {
      unknown->push_back(feature);
    }
  }
}

std::string PlaceName(std::string_view array, std::size_t index) {
  return fmt::format("{}[{}]", array, index);
}

std::string_view BaseOf(std::string_view name) {
  return name.substr(0, std::min(name.size(), name.find_first_of("=[")));
}

std::string Listed(std::string_view name) {
  if (IsPlaceName(name)) return fmt::format("{}[*]", name.substr(0, name.rfind('[')));
  const std::string_view base = BaseOf(name);
  return base.size() < name.size() && name[base.size()] == '=' ? fmt::format("{}=*", base)
                                                               : std::string(name);
}

bool IsPlaceName(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (!name.ends_with(']') || open == std::string_view::npos || open + 2 >= name.size()) {
    return false;
  }
  const std::string_view index = name.substr(open + 1, name.size() - open - 2);
  return std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view WholeOf(std::string_view name) {
  return IsPlaceName(name) ? name.substr(0, name.rfind('[') + 1) : name;
}

}  // namespace codband::features
