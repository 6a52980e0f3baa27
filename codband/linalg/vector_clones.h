#pragma once

// Put before the definition of a kernel: it is compiled for the wider vectors of newer processors
// as well, and the program takes the right version when it starts. The results are the same bits:
// no kernel lets the order of its operations depend on the width, and no version fuses multiply
// and add. Sanitizers cannot run the code that chooses, so they get the portable version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define CODBAND_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CODBAND_VECTOR_CLONES
#endif
