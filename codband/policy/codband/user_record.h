#pragma once

#include <cstdint>
#include <memory>

#include "codband/base/bytes.h"
#include "codband/policy/codband/departure.h"
#include "codband/policy/codband/detector_state.h"
#include "codband/policy/codband/past_periods.h"
#include "codband/policy/codband/period.h"
#include "codband/policy/item_history.h"
#include "codband/policy/model_aliases.h"

namespace codband {

// All that CoDBand keeps of one user.
struct UserRecord {
  Period current;
  PastPeriods past = {};
  std::unique_ptr<DetectorState> detector;
  std::unique_ptr<ItemHistory> items = {};  // nullptr: none were shown
  DepartureEvidence departure_evidence = {};
  // The length of the period at which it is scored as a whole again; 0: at every observation.
  std::uint32_t next_review = 0;
  std::uint32_t other_rewards = 0;  // than 0 and 1, see RewardNoise

  bool has_period() const { return current.model != kNoModel; }
  // Those that are remembered.
  std::uint64_t observations() const;

  std::size_t HeapBytes() const;

  // Vectors have `dim` features from now on; the new ones were 0.
  void Grow(std::size_t dim);

  // Models go by the names that they have since they were joined. Closed periods keep theirs: they
  // are looked up by them.
  void Translate(const ModelAliases& aliases);

  // The same for all models, when partitions become one policy (SharedPool::Join).
  void Rename(const ModelAliases& aliases);

  // What does not fit together; empty if all does.
  std::string Fault() const;

  void Save(ByteWriter& out) const;
  // `dim_before_columns`: the features of a vector in records from before format 5, which do not
  // tell them. Fails if the record has more than `dim`, those that vectors have now.
  void Load(ByteReader& in, std::size_t dim_before_columns, std::size_t dim);
  // What was shown to the user, which older records lack. A record without any has none of its
  // bytes.
  bool has_rest() const { return items != nullptr; }
  void SaveRest(ByteWriter& out) const;
  void LoadRest(ByteReader& in);
};

}  // namespace codband
