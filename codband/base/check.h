#pragma once

#include <stdexcept>

namespace codband {

// A broken invariant: a bug in codband, never the caller's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void ThrowInternalError(const char* file, int line, const char* condition);

}  // namespace codband

// Always on. Throws InternalError with file, line and condition.
#define CODBAND_CHECK(condition)                                                     \
  do {                                                                               \
    if (!(condition)) ::codband::ThrowInternalError(__FILE__, __LINE__, #condition); \
  } while (false)

// For inner loops: on in debug and sanitizer builds only.
#if defined(NDEBUG) && !defined(_GLIBCXX_ASSERTIONS)
#define CODBAND_DCHECK(condition) \
  do {                            \
  } while (false)
#else
#define CODBAND_DCHECK(condition) CODBAND_CHECK(condition)
#endif
