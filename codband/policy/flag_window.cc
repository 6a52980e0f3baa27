#include "codband/policy/flag_window.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband {

void FlagWindow::Push(bool flag) {
  if (size() < capacity_) {
    flags_.push_back(flag);
  } else {
    raised_ -= flags_[next_];
    flags_[next_] = flag;
    next_ = (next_ + 1) % capacity_;
  }
  raised_ += flag;
}

void FlagWindow::Clear() {
  flags_.clear();
  next_ = 0;
  raised_ = 0;
}

void FlagWindow::Save(ByteWriter& out) const {
  out.U64(size());
  out.U64(next_);
  for (const std::uint8_t flag : flags_) out.U8(flag);
}

void FlagWindow::Load(ByteReader& in) {
  const std::size_t count = in.Count("flags", 1);
  next_ = in.U64("place of the next flag");
  if (count > capacity_ || next_ >= std::max<std::size_t>(count, 1)) {
    in.Fail("flags", fmt::format("are {} with the next at {}, expected at most {}", count, next_,
                                 capacity_));
    return;
  }
  flags_.resize(count);
  raised_ = 0;
  for (std::uint8_t& flag : flags_) {
    flag = in.U8("flag");
    if (flag > 1) in.Fail("flag", fmt::format("is {}, expected 0 or 1", flag));
    raised_ += flag;
  }
}

}  // namespace codband
