#!/bin/sh
# Builds every fuzzer and runs it: sh tests/fuzz/run.sh [SECONDS [NAME ...]]. Needs clang, its runtime (libclang-rt-14-dev) and
# OpenMP (libomp-dev). New inputs go to build/fuzz/corpus; a finding ends the run with its file named.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
cmake --preset fuzz -G Ninja >/dev/null
cmake --build --preset fuzz
names=${*:-$(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')}
for name in $names; do
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus"
    seeds=
    [ -d "tests/fuzz/seeds/$name" ] && seeds=tests/fuzz/seeds/$name
    echo "== $name, $seconds s"
    # shellcheck disable=SC2086
    "$(find build/fuzz -name "fuzz_$name" -type f)" "$corpus" $seeds -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 \
        -artifact_prefix="build/fuzz/$name-" -print_final_stats=1 2>&1 | grep -E 'ERROR|SUMMARY|stat::number_of_executed|crash|Test unit' || true
    if ls "build/fuzz/$name-"* >/dev/null 2>&1; then
        echo "a finding: $(ls "build/fuzz/$name-"*)"
        exit 1
    fi
done
