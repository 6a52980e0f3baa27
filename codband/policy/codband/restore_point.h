#pragma once

#include <optional>
#include <string>

#include "codband/base/bytes.h"
#include "codband/policy/policy.h"

namespace codband {

// What all users shared, beside the pool, when the newest user came. Sums can be taken back; what
// was estimated from them along the way cannot. If that user is forgotten before anybody else has
// brought anything, all is as it was before they came. Not thread-safe for writing.
class RestorePoint {
 public:
  void Set(UserId user, std::string state) { point_ = {.user = user, .state = std::move(state)}; }
  // An observation of this user comes: from now on it is too late for others.
  void Observe(UserId user) {
    if (point_ && point_->user != user) point_.reset();
  }
  // The state before this user came, if nobody else has brought anything since. Ends the point.
  std::optional<std::string> Take(UserId user) {
    std::optional<std::string> state;
    if (point_ && point_->user == user) state = std::move(point_->state);
    point_.reset();
    return state;
  }

  void Save(ByteWriter& out) const {
    out.U8(point_ ? 1 : 0);
    if (!point_) return;
    out.U64(point_->user);
    out.String(point_->state);
  }
  void Load(ByteReader& in) {
    point_.reset();
    if (in.U8("restore point") == 0) return;
    const UserId user = in.U64("user of a restore point");
    Set(user, in.String("state of a restore point"));
  }

 private:
  struct Point {
    UserId user;
    std::string state;
  };
  std::optional<Point> point_;
};

}  // namespace codband
