#!/usr/bin/env bash
# The Python tests, the slow ones included, under AddressSanitizer and UndefinedBehaviorSanitizer: adds the module
# to the build of the preset asan-ubsan.
#   scripts/python_asan.sh [PYTEST ARGUMENTS...]
# The server that the clients' tests talk to is TESTED_CODBAND; if it is not given, it is built like the module.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
targets=(codband_python)
if [ -z "${TESTED_CODBAND:-}" ]; then
  targets+=(codband)
  export TESTED_CODBAND=$PWD/build/asan-ubsan/codband/codband
fi
scripts/build.sh asan-ubsan "${targets[@]}"
# The interpreter is not instrumented: the runtimes come first. What CPython keeps for good is no leak of ours.
export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD=$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so)
export PYTHONPATH=$PWD/build/asan-ubsan/python PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider python/tests "$@"
