// Breaks the One Definition Rule together with variable_a.cc, for the test of the check.
namespace codband {

extern double two_types_one_variable;

double Twice() { return 2 * two_types_one_variable; }

}  // namespace codband
