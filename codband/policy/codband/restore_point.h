#pragma once

#include <cstdint>
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
  // `dim`: the features of an arm at that time.
  void Set(UserId user, std::uint64_t dim, std::string state) {
    point_ = {.user = user, .dim = dim, .state = std::move(state)};
  }
  // An observation of this user comes: invalidates the restore point of any other user.
  void Observe(UserId user) {
    if (point_ && point_->user != user) point_.reset();
  }
  // Invalidates the point: the state is no longer compatible.
  void End() { point_.reset(); }
  // The state before this user came, if nobody else has brought anything since. Ends the point.
  struct Point {
    UserId user;
    std::uint64_t dim;
    std::string state;
  };
  std::optional<Point> Take(UserId user) {
    std::optional<Point> point;
    if (point_ && point_->user == user) point = std::move(point_);
    point_.reset();
    return point;
  }

  void Save(ByteWriter& out) const {
    out.U8(point_ ? kWithDim : 0);
    if (!point_) return;
    out.U64(point_->user);
    out.U64(point_->dim);
    out.String(point_->state);
  }
  // `dim`: the features of an arm in a state that does not tell them.
  void Load(ByteReader& in, std::uint64_t dim) {
    point_.reset();
    const std::uint8_t kind = in.U8("restore point");
    if (kind == 0) return;
    const UserId user = in.U64("user of a restore point");
    if (kind == kWithDim) dim = in.U64("features of a restore point");
    Set(user, dim, in.String("state of a restore point"));
  }

 private:
  static constexpr std::uint8_t kWithDim = 2;  // before format 5 it was 1, without

  std::optional<Point> point_;
};

}  // namespace codband
