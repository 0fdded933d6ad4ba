#!/bin/sh
# Installs what the fuzzers need, builds them and runs each: sh tests/fuzz/run.sh [SECONDS [NAME ...]].
# PNET_FUZZ_JOBS of them run at a time (1). Inputs of interest are kept in build/fuzz/corpus, findings in build/fuzz/findings;
# both are tried first the next time. A finding, or a fuzzer that dies, fails the run.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
sh setup.sh --packages clang libclang-rt-dev libomp-dev llvm
names=${*:-$(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')}
cmake --preset fuzz -G Ninja >/dev/null
# shellcheck disable=SC2046
cmake --build --preset fuzz --target $(printf 'fuzz_%s ' $names)
printf '%s\n' $names | xargs -P "${PNET_FUZZ_JOBS:-1}" -n 1 sh tests/fuzz/one.sh "$seconds"
