#pragma once

#include <string>

#include "codband/base/bytes.h"
#include "codband/policy/codband/change_rate.h"
#include "codband/policy/codband/period.h"
#include "codband/policy/model_aliases.h"

namespace codband {

// What a change detector keeps of one user. Each detector derives its own (change_detector.h) and
// is the only one to read it. Not thread-safe for writing.
class DetectorState {
 public:
  virtual ~DetectorState() = default;

  // How the trials of the user's changes ended, if it holds any.
  virtual Verdicts verdicts() const { return {}; }

  // The user's period was closed: what refers to its observations goes.
  virtual void PeriodClosed() {}

  // The features of a vector in what it keeps, intercept included; 0 if it keeps the columns that
  // occur.
  virtual std::size_t dim() const { return 0; }
  // Vectors have `dim` features from now on, intercept included; the new ones, before the last one
  // if that is an intercept, were 0.
  virtual void Grow(std::size_t, bool) {}

  // Models go by other names from now on; the period has its new one already.
  virtual void Translate(const ModelAliases&, const Period&) {}
  // Of the state, the object included.
  virtual std::size_t MemoryBytes() const = 0;

  // What does not fit the user's current period; empty if all does.
  virtual std::string Fault(const Period&) const { return {}; }

  // The state as part of the user's record. State format 3 has two places for it: one beside the
  // period, where the window test is, and one after the past periods, where the Bayesian filter is.
  // A new detector uses the second one.
  virtual void SaveBesidePeriod(const Period&, ByteWriter&) const {}
  virtual void LoadBesidePeriod(Period&, ByteReader&, const RecordLayout&) {}
  virtual void Save(ByteWriter& out) const = 0;
  virtual void Load(ByteReader& in, const RecordLayout& layout) = 0;
  // What state format 4 lacks: only users to whom items were shown have it.
  virtual void SaveRest(ByteWriter&) const {}
  virtual void LoadRest(ByteReader&) {}
};

}  // namespace codband
