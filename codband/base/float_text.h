#pragma once

namespace codband {

// The shortest digits that read back as the same float: what fmt's "{}" gives, byte for byte, at a
// fraction of the cost for numbers of usual size. Writes to `at`, where there is room for 32 bytes,
// and returns the end. Precondition: finite.
char* WriteShortest(char* at, float value);

}  // namespace codband
