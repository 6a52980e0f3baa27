// Breaks the One Definition Rule together with variable_b.cc, for the test of the check.
namespace codband {

int two_types_one_variable = 1;

}  // namespace codband
