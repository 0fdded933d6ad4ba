#!/bin/sh
# Runs one fuzzer that is built already, quiet unless it finds something: sh tests/fuzz/one.sh SECONDS NAME
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
name=$2
corpus=build/fuzz/corpus/$name
findings=build/fuzz/findings/$name
log=build/fuzz/$name.log
mkdir -p "$corpus" "$findings"
dict=
[ ! -e "tests/fuzz/$name.dict" ] || dict=-dict=tests/fuzz/$name.dict
status=0
# shellcheck disable=SC2086
build/fuzz/tests/fuzz/fuzz_"$name" "$corpus" "$findings" tests/fuzz/seeds/"$name" $dict -max_total_time="$seconds" \
    -rss_limit_mb=4096 -timeout=20 -artifact_prefix="$findings/" -print_final_stats=1 >"$log" 2>&1 || status=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
if [ "$status" != 0 ] || [ "${runs:-0}" = 0 ]; then
    tail -n 60 "$log"
    echo "fuzz_$name: died with status $status; the whole log is $log"
    sed -n 's/.*Test unit written to /the input that did it: /p' "$log"
    exit 1
fi
echo "fuzz_$name: $runs inputs, no finding"
