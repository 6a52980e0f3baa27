#pragma once

// Function multiversioning: precedes the definition of a kernel, which is then also compiled for
// wider vectors; the loader picks a version for the processor. Results are bit-identical: no kernel
// lets the order of its operations depend on the vector width, and no version fuses multiply and
// add. Sanitizers cannot run the resolver, so they get the portable version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define CODBAND_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CODBAND_VECTOR_CLONES
#endif
