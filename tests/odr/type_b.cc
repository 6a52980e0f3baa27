// Breaks the One Definition Rule together with type_a.cc, for the test of the check.
#include <string>

namespace codband {

struct TwoTypesOneName {
  bool quick = false;
  std::string name;
};

const std::string& NameOf(const TwoTypesOneName& two) { return two.name; }

}  // namespace codband
