#pragma once

#include <cstdint>

#include "codband/base/bytes.h"
#include "codband/policy/codband/belief.h"
#include "codband/policy/codband/change_rate.h"
#include "codband/policy/codband/change_window.h"
#include "codband/policy/codband/departure.h"
#include "codband/policy/codband/past_periods.h"
#include "codband/policy/codband/period.h"

namespace codband {

// All that CoDBand keeps of one user.
struct UserRecord {
  Period current;
  PastPeriods past = {};
  // detector=bayes alone:
  ChangeWindow window;
  Belief belief = {};
  Trial trial = {};
  DepartureEvidence departure_evidence = {};
  std::uint64_t next_review = 0;  // the length of the period at which it is scored as a whole again

  bool has_period() const { return current.model != kNoModel; }

  void Save(ByteWriter& out) const {
    current.Save(out);
    past.Save(out);
    window.Save(out);
    belief.Save(out);
    trial.Save(out);
    departure_evidence.Save(out);
    out.U64(next_review);
  }
  void Load(ByteReader& in) {
    current.Load(in);
    past.Load(in, current.data.dim());
    window.Load(in);
    belief.Load(in);
    trial.Load(in);
    departure_evidence.Load(in);
    next_review = in.U64("next review");
  }
};

}  // namespace codband
