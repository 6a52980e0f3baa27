#include <fmt/format.h>

#include "codband/policy/codband/bayes_detector.h"

namespace codband {

std::string FilterState::Fault(const Period& period) const {
  if (window.size() <= period.data.m()) return {};
  return fmt::format("the window has {} observations, the period {}", window.size(),
                     period.data.m());
}

// A change between two models that are one by now was none.
void FilterState::Translate(const ModelAliases& aliases, const Period& period) {
  belief.Translate(aliases);
  if (trial.left == 0) return;
  trial.old_model = aliases.Resolve(trial.old_model);
  if (trial.old_model == period.model) trial.left = 0;
}

void FilterState::Save(ByteWriter& out) const {
  window.Save(out);
  belief.Save(out);
  trial.Save(out);
}

void FilterState::Load(ByteReader& in, const RecordLayout& layout) {
  window.Load(in, layout);
  belief.Load(in);
  trial.Load(in);
}

}  // namespace codband
