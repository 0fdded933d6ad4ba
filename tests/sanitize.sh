#!/bin/sh
# Runs the tests under sanitizers: sh tests/sanitize.sh [thread] [quick] [options of ctest]. AddressSanitizer and
# UndefinedBehaviorSanitizer; with `thread` ThreadSanitizer, built with clang: its OpenMP runtime tells the sanitizer which
# thread waits for which (by libarcher, which comes with it); GCC's does not. `quick` leaves out the tests with the label slow.
set -eu
cd "$(dirname "$0")/.."
preset=asan
without='data|gpu'
if [ "${1:-}" = thread ]; then
    shift
    preset=tsan
    sh setup.sh --packages clang libclang-rt-dev libomp-dev llvm
    # the runtimes are not instrumented, so accesses inside them are not reported
    export TSAN_OPTIONS="ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
else
    sh setup.sh --packages
fi
if [ "${1:-}" = quick ]; then
    shift
    without="$without|slow"
fi
cmake --preset $preset -G Ninja >/dev/null
cmake --build --preset $preset
ctest --preset $preset --label-exclude "$without" -j2 "$@"
