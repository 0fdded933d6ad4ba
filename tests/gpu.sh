#!/bin/sh
# What needs a GPU: sh tests/gpu.sh [BUILD [TOOL ...]]. The tests of that label; then, where tools are named (memcheck,
# racecheck, initcheck, synccheck), the programs among them under compute-sanitizer: memcheck over all of them, the
# others, which are slow, over the cases of the layers, which reach every kernel with small inputs.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -gt 0 ] && shift
ctest --test-dir "$build" --label-regex gpu --no-tests=error --output-on-failure
for tool in "$@"; do
    options=
    case $tool in
    memcheck) programs=$(ls "$build"/tests/test_cuda_* "$build"/tests/test_cases) options='--leak-check full' ;;
    *) programs=$build/tests/test_cases && export PNET_SHORT=1 ;;
    esac
    for program in $programs; do
        arguments=
        [ "${program##*/}" = test_cases ] && arguments=cuda
        echo "== $tool: ${program##*/}"
        # shellcheck disable=SC2086
        compute-sanitizer --tool "$tool" $options --error-exitcode 99 "$program" $arguments 2>&1 | tail -n 4 >"$build/sanitizer.log" ||
            true
        cat "$build/sanitizer.log"
        grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$build/sanitizer.log" || exit 1
    done
done
