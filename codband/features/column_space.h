#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/status.h"
#include "codband/features/hashed_features.h"

namespace codband::features {

// Whom a feature describes. The same name on two sides is two columns.
enum class Side : std::uint8_t { kItem = 0, kContext = 1, kUser = 2 };
// Who brought a name. Those of the context and of the user always come with a request, those of an
// item with the catalogue or with a request that describes it.
enum class Source : std::uint8_t { kCatalogue, kRequest };

// A sparse vector: by ascending column, each at most once (see Compact).
struct Cell {
  std::uint32_t column = 0;
  double value = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};
using Cells = std::vector<Cell>;

// Sorts by column and adds up the values of equal columns.
void Compact(Cells& cells);

// How many columns there may be. `columns` have a name or a crossing of their own; what comes later
// shares `shared()` more.
struct ColumnLimits {
  static constexpr std::size_t kMost = 800;
  std::size_t columns = 256;
  // So many are kept for names of the catalogue: names of requests and crossings leave them.
  std::size_t reserved = 0;
  // So many names of requests get a column when they are first seen. Later ones have to be seen
  // more often first: who gives out columns counts that.
  std::size_t at_once = kMost;

  // Where anybody may send names: a quarter is reserved, an eighth is given at first sight.
  static ColumnLimits Serving(std::size_t columns) {
    return {
        .columns = columns, .reserved = columns / 4, .at_once = columns < 128 ? 16 : columns / 8};
  }

  // Crossings stop here, so that names that come later still find a column.
  std::size_t crossings() const { return columns - columns / 4; }
  std::size_t shared() const { return columns < 32 ? 8 : columns / 4; }
  std::size_t all() const { return columns + shared(); }
};

// The columns of a feature vector, given out in the order in which their names are first seen:
//
//   a name       "price", "genre=jazz", "embedding[3]": what was called so, of an item, of the
//                context or of the user
//   a crossing   the product of an item's column and one of the context or the user
//   shared       one of a block of columns that names and crossings without a column of their own
//                share by a signed hash. Of a pair the places add up and the signs multiply, which
//                is the tensor sketch of the outer product (Pham & Pagh, 2013)
//
// A column never changes its meaning. What a space grows by is told as Additions: appending the
// same ones to another space gives the same columns. Const functions may run concurrently.
class ColumnSpace {
 public:
  enum class Kind : std::uint8_t {
    kName = 0,
    kCrossing = 1,
    kShared = 2,  // an addition: the whole block; a column: one of it
    kSharer = 3,  // an addition alone: a name that shares columns, for people to know
  };
  struct Addition {
    Kind kind = Kind::kName;
    Side side = Side::kItem;  // of a name or a sharer
    bool described = false;   // of a name of an item: it came with a request
    std::string name = {};    // of a name or a sharer
    std::uint32_t item = 0;   // of a crossing: the column of the item
    std::uint32_t other = 0;  // and the other one
    std::uint32_t count = 0;  // of a shared block: its columns
    // Of a name that is asked for: it has not been seen often, and gets a column up to
    // ColumnLimits::at_once. Of an addition that was made it is false.
    bool at_once = false;

    friend bool operator==(const Addition&, const Addition&) = default;
  };
  // What a column is. Shared ones have no name.
  struct Column {
    Kind kind = Kind::kName;
    Side side = Side::kItem;
    Source source = Source::kCatalogue;
    std::string name = {};
    std::uint32_t item = 0;
    std::uint32_t other = 0;
    std::uint64_t hash = 0;
  };
  // A name of the catalogue, or what names of requests have in common (see Listed).
  struct Sharer {
    Side side;
    std::string name;
  };
  // Where a value goes: times `sign` to the column.
  struct Place {
    std::uint32_t column = 0;
    double sign = 1;
  };

  static constexpr std::size_t kMostSharers = 1000;  // that are listed
  static constexpr std::size_t kMaxNameBytes = 1024;

  std::size_t size() const { return columns_.size(); }
  std::size_t own() const { return columns_.size() - shared_size_; }
  std::size_t crossings() const { return by_pair_.size(); }
  // Names that came with requests and have a column of their own.
  std::size_t requested() const { return requested_; }
  // Columns that are used or reserved for names of the catalogue.
  std::size_t Taken(const ColumnLimits& limits) const;
  const Column& column(std::size_t index) const { return columns_[index]; }
  bool shares() const { return shared_size_ > 0; }
  std::size_t shared_columns() const { return shared_size_; }
  // The first names that share columns; there may be more.
  std::span<const Sharer> sharers() const { return sharers_; }

  // The column of its own.
  std::optional<std::uint32_t> Find(Side side, std::string_view name) const;
  std::optional<std::uint32_t> FindCrossing(std::uint32_t item, std::uint32_t other) const;
  bool FindSharer(Side side, std::string_view name) const;
  // The column of its own, else the shared one. Nothing if Admit would give it one of its own, or
  // open the shared ones.
  std::optional<Place> PlaceOf(Side side, std::string_view name, const ColumnLimits& limits,
                               Source source = Source::kCatalogue) const;
  std::optional<Place> CrossingPlace(std::uint32_t item, std::uint32_t other,
                                     const ColumnLimits& limits) const;
  // "genre=jazz × device=phone"; "shared 3".
  std::string NameOf(std::size_t column) const;
  // Whether the column is a place in an array: "embedding[3]", "[0]".
  bool IsPlace(std::size_t column) const;

  // Give the name or the pair of columns a column, unless it has one, as far as the limits allow;
  // what is added is appended to `added`. Beyond the limits the shared block is opened, once.
  // Precondition of AdmitCrossing: both columns exist.
  // `source` matters for items. Whether a name was seen often enough is the caller's to decide.
  void Admit(Side side, std::string_view name, const ColumnLimits& limits,
             std::vector<Addition>& added, Source source = Source::kCatalogue);
  void AdmitCrossing(std::uint32_t item, std::uint32_t other, const ColumnLimits& limits,
                     std::vector<Addition>& added);
  // Lists a name that shares columns, while there is room on the list.
  void List(Side side, std::string_view name, std::vector<Addition>& added);
  // Whether a new name, or a new crossing of two names, gets a column of its own.
  bool HasRoom(const ColumnLimits& limits, Source source) const {
    return (source == Source::kCatalogue ? own() : Taken(limits)) < limits.columns;
  }
  bool HasRoomForCrossings(const ColumnLimits& limits) const {
    return Taken(limits) < limits.crossings();
  }

  // Admits or lists what was added to another space, which knew fewer columns than this one or as
  // many: what is not here yet, as far as the limits allow.
  void AdmitLike(const Addition& addition, const ColumnLimits& limits,
                 std::vector<Addition>& added);

  // The name is forgotten: the column keeps its place and is nobody's. Precondition: it has a name.
  void ForgetName(std::uint32_t column);
  // Precondition: it has a name, and nothing else has the new one.
  void Rename(std::uint32_t column, std::string name);

  // Repeats an addition. kCorruption if it cannot be one to this space; nothing has changed then.
  Status Append(const Addition& addition);

  // Undoes what was added since the mark was taken. Marks are taken and returned to in the order of
  // a stack.
  struct Mark {
    std::size_t columns = 0;
    std::size_t sharers = 0;
  };
  Mark mark() const { return {.columns = columns_.size(), .sharers = sharers_.size()}; }
  void ReturnTo(const Mark& mark);

  // All additions, in their order: append them to an empty space to have the same.
  std::vector<Addition> Additions() const;

 private:
  static std::string Key(Side side, std::string_view name);
  static std::uint64_t PairKey(std::uint32_t item, std::uint32_t other) {
    return std::uint64_t{item} << 32 | other;
  }
  void Add(const Addition& addition);
  void OpenShared(const ColumnLimits& limits, std::vector<Addition>& added);
  void AddAndTell(Addition addition, std::vector<Addition>& added);

  std::vector<Column> columns_;
  std::unordered_map<std::string, std::uint32_t> by_name_;    // by Key
  std::unordered_map<std::uint64_t, std::uint32_t> by_pair_;  // by PairKey
  std::vector<Sharer> sharers_;
  std::unordered_map<std::string, std::uint32_t> sharer_by_name_;  // index in sharers_
  std::size_t requested_ = 0;
  std::size_t shared_first_ = 0;
  std::size_t shared_size_ = 0;
};

void SaveAdditions(ByteWriter& out, std::span<const ColumnSpace::Addition> additions);
std::vector<ColumnSpace::Addition> LoadAdditions(ByteReader& in);

// The cells of named features that have a place; the others go to `unknown`, in their order, if it
// is given. Appends to `cells`, which the caller compacts.
void Resolve(const ColumnSpace& space, const ColumnLimits& limits, Side side,
             std::span<const NamedFeature> named, Cells& cells,
             std::vector<NamedFeature>* unknown = nullptr, Source source = Source::kCatalogue);

// "[3]" is the name of the fourth number of a plain array, "embedding[3]" of one with a name.
std::string PlaceName(std::string_view array, std::size_t index);
bool IsPlaceName(std::string_view name);
// What gets all of its columns or none: of a place in an array "embedding[", else the name.
std::string_view WholeOf(std::string_view name);
// How a name of a request that shares columns is listed: "city=*", "embedding[*]". There may be
// any number of values, and they may be those of one user.
std::string Listed(std::string_view name);
// What is before the value or the place: "genre" of "genre=jazz", "embedding" of "embedding[3]".
std::string_view BaseOf(std::string_view name);

}  // namespace codband::features
