#!/bin/sh
# What needs a GPU: sh tests/gpu.sh [BUILD [TOOL ...]]. The tests of that label; then, where tools are named (memcheck,
# racecheck, initcheck, synccheck), the programs among them under compute-sanitizer, in their short form: memcheck over
# all of them, the others over the cases of the layers and the tests of the kernels.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -gt 0 ] && shift
ctest --test-dir "$build" --label-regex gpu --no-tests=error --output-on-failure
[ $# -gt 0 ] || exit 0
export PNET_SHORT=1
log=$build/sanitizer.log
for tool in "$@"; do
    options=
    programs="$(ls "$build"/tests/test_cuda_* | grep -v huge) $build/tests/test_cases"
    [ "$tool" = memcheck ] && options='--leak-check full'
    [ "$tool" = racecheck ] && programs=$(echo "$programs" | sed 's/[^ ]*session//')
    for program in $programs; do
        arguments=
        [ "${program##*/}" = test_cases ] && arguments=cuda
        # shellcheck disable=SC2086
        compute-sanitizer --tool "$tool" $options --error-exitcode 99 "$program" $arguments >"$log" 2>&1 || {
            tail -n 40 "$log"
            exit 1
        }
        echo "$tool ${program##*/}: $(grep 'SUMMARY' "$log" | tail -n 1)"
    done
done
