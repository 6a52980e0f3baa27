#pragma once

namespace codband::eval {

// Bounds of the rewards. Guaranteed intervals hold for rewards that never leave them.
struct RewardRange {
  double low = 0;
  double high = 1;

  // The reward on a scale from 0 to 1, and back.
  double Scale(double reward) const { return (reward - low) / (high - low); }
  double Unscale(double share) const { return low + (high - low) * share; }
};

}  // namespace codband::eval
