// Breaks the One Definition Rule together with type_b.cc, for the test of the check.
#include <vector>

namespace codband {

struct TwoTypesOneName {
  std::vector<double> weights;
};

double FirstWeight(const TwoTypesOneName& two) { return two.weights.front(); }

}  // namespace codband
