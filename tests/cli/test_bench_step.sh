# bench/step.sh: a step from two builds; here twice the same, once, on few points.
. tests/cli/common.sh
build=$(dirname "$pnetc")
step() { # CODE ARGUMENTS...
    local want=$1 got=0
    shift
    POINTS=200 RUNS=1 sh bench/step.sh "$@" >"$out" 2>"$err" || got=$?
    check "exit code $got instead of $want: step.sh $*" test "$got" = "$want"
}
step 2
says "OLD_BUILD NEW_BUILD"
mkdir "$work/debug"
echo 'CMAKE_BUILD_TYPE:STRING=Debug' >"$work/debug/CMakeCache.txt"
step 2 "$work/debug" "$build"
says "debug is no release build"
if grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt"; then
    step 0 "$build" "$build" tests/cli/tiny.pnet
    prints "tests/cli/tiny.pnet, 200 points, 1 threads, 1 runs"
    for stage in geometry forward backward optimizer step_with_geometry cpu_time_of_run; do
        check "a figure of $stage: $(cat "$out")" awk -v stage=$stage '
            $1 == stage { found = $2 > 0 && $2 < 100000 && $(NF - 1) > 0 && $(NF - 1) == $NF } END { exit !found }' "$out"
    done
fi
finish
