#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/policy.h"

namespace codband {

// Names of models that have been joined into others. A model goes by the smallest of its names, so
// that there are no cycles, and every alias leads there in one step. Not thread-safe for writing.
class ModelAliases {
 public:
  struct Alias {
    ModelId from;
    ModelId to;

    bool operator==(const Alias&) const = default;
  };

  // In the order of `from`.
  std::span<const Alias> entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // The name that the model goes by. O(log n).
  ModelId Resolve(ModelId id) const;

  // The two are one. Returns the one that is an alias from now on, kNoModel if they were one
  // before.
  ModelId Join(ModelId one, ModelId other);

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

  bool operator==(const ModelAliases&) const = default;

 private:
  std::vector<Alias> entries_;
};

}  // namespace codband
