#include "codband/policy/model_aliases.h"

#include <algorithm>
#include <utility>

namespace codband {

ModelId ModelAliases::Resolve(ModelId id) const {
  if (entries_.empty()) return id;
  const auto found = std::ranges::lower_bound(entries_, id, {}, &Alias::from);
  return found == entries_.end() || found->from != id ? id : found->to;
}

ModelId ModelAliases::Join(ModelId one, ModelId other) {
  ModelId to = Resolve(one);
  ModelId from = Resolve(other);
  if (to == from) return kNoModel;
  if (to > from) std::swap(to, from);
  for (Alias& alias : entries_) {
    if (alias.to == from) alias.to = to;
  }
  entries_.insert(std::ranges::lower_bound(entries_, from, {}, &Alias::from), {from, to});
  return from;
}

void ModelAliases::Save(ByteWriter& out) const {
  out.U64(entries_.size());
  for (const Alias& alias : entries_) {
    out.U64(alias.from);
    out.U64(alias.to);
  }
}

void ModelAliases::Load(ByteReader& in) {
  entries_.assign(in.Count("joined models", 2 * sizeof(ModelId)), {});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i] = {.from = in.U64("joined model"), .to = in.U64("model that it was joined into")};
    if (i > 0 && entries_[i].from <= entries_[i - 1].from)
      in.Fail("joined model", "is out of order");
  }
  for (const Alias& alias : entries_) {
    if (alias.to >= alias.from || Resolve(alias.to) != alias.to) {
      in.Fail("joined model", "was not joined into a model");
    }
  }
  if (!in.ok()) entries_.clear();
}

}  // namespace codband
