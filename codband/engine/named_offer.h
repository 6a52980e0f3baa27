#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/column_clerk.h"
#include "codband/engine/engine.h"
#include "codband/features/crossings.h"

namespace codband::engine {

// The length of the plain arrays of items, once there was one; 0: none seen yet, or unknown because
// some positions share columns.
std::size_t PlainLength(const features::ColumnSpace& space);
// kInvalidArgument if the array has another length than those before. `length`: theirs, or 0, and
// then that of this one.
Status CheckPlainLength(std::string_view field, std::size_t size, std::size_t& length);

// The arms of one request where every name has a column: turns what has one into rows of numbers,
// and collects what has none yet. That counts as 0, as it does in everything learned so far.
// Borrows from the space, the request and the catalogue. Buffers are reused. Not thread-safe.
class NamedOffer {
 public:
  struct Rules {
    features::ColumnLimits limits = {};
    features::CrossingRules crossings = {};
  };

  // Begins an offer under the context of the request.
  void Start(const features::ColumnSpace& space, const Rules& rules, const RankRequest& request);
  // An item of the catalogue; the cells outlive the offer.
  void AddItem(std::span<const features::Cell> cells);
  // An action that the request describes.
  void AddDescribed(const Candidate& candidate);

  std::size_t size() const { return rows_.size(); }
  // The rows as `dim` numbers each. kInvalidArgument if features or their products could be too
  // large for a policy.
  Status Fill(std::size_t dim, std::vector<double>& out) const;
  // What has no column yet, if anything, with the features of the arm `chosen`.
  std::unique_ptr<NewColumns> Wanted(std::size_t chosen) const;
  // The columns that the context and the user have of their own.
  std::vector<std::uint32_t> ContextColumns() const;
  void Clear();

 private:
  struct Row {
    std::optional<std::span<const features::Cell>> item = {};  // of the catalogue; else in cells_
    std::size_t begin = 0, end = 0;
    std::size_t unknown_begin = 0, unknown_end = 0;  // in unknown_
  };
  void Read(features::Side side, std::span<const features::NamedFeature> named,
            features::Cells& cells, std::vector<features::NamedFeature>& unknown);
  // Whether names without a column get one when they are first seen; else it takes longer, and
  // crossings with them are of no use yet.
  bool TakesAtOnce() const { return space_->requested() < rules_->limits.at_once; }
  std::span<const features::Cell> CellsOf(const Row& row) const;
  bool MissesCrossings() const;
  void WantCrossings(NewColumns& wanted) const;

  const features::ColumnSpace* space_ = nullptr;
  const Rules* rules_ = nullptr;
  features::CrossedContext crossed_;
  features::Cells context_;
  std::vector<features::NamedFeature> context_unknown_;
  std::vector<features::NamedFeature> user_unknown_;
  std::vector<Row> rows_;
  features::Cells cells_;
  features::Cells scratch_;
  std::vector<features::NamedFeature> unknown_;  // of actions
  std::vector<NewColumns::Name> to_list_;        // as they are listed; they share columns
};

}  // namespace codband::engine
