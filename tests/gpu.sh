#!/bin/sh
# What needs a GPU: sh tests/gpu.sh [BUILD [TOOL ...]]. Without a tool, the tests of that label. With tools of
# compute-sanitizer (memcheck, racecheck, initcheck, synccheck), the programs of these tests under each of them, in their
# short form, side by side: memcheck over all of them and over trainings, the others over those that reach every kernel.
# A line a program; what a tool said stands in BUILD/sanitizer.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -gt 0 ] && shift
if [ $# = 0 ]; then
    ctest --test-dir "$build" --label-regex gpu --no-tests=error --output-on-failure
    exit
fi
export PNET_SHORT=1 OMP_WAIT_POLICY=passive
: "${PNET_TEST_DATA:=$(sed -n 's/^PNET_TEST_DATA:PATH=//p' "$build/CMakeCache.txt")}"
export PNET_TEST_DATA
logs=$build/sanitizer
mkdir -p "$logs"

# check TOOL NAME COMMAND...: the command under the tool; its exit code and what the tool counted go to TOOL-NAME.line.
check() {
    tool=$1 name=$2 options='' code=0 begin=$(date +%s)
    shift 2
    [ "$tool" = memcheck ] && options='--leak-check full'
    # shellcheck disable=SC2086
    compute-sanitizer --tool "$tool" $options --error-exitcode 99 "$@" >"$logs/$tool-$name.log" 2>&1 || code=$?
    counted=$(grep SUMMARY "$logs/$tool-$name.log" | tail -n 1 | tr -d =)
    echo "$tool $name: exit code $code, $(($(date +%s) - begin)) s,$counted" >"$logs/$tool-$name.line"
}

# train: the trainings of gpu_train by a program that runs under memcheck.
train() {
    code=0 begin=$(date +%s)
    cat >"$logs/pnetc" <<END
#!/bin/sh
exec compute-sanitizer --tool memcheck --leak-check full --error-exitcode 99 --log-file "$logs/memcheck-pnetc.%p.log" "$build/pnetc" "\$@"
END
    chmod +x "$logs/pnetc"
    PNETC=$logs/pnetc bash tests/cuda/gpu_train.sh >"$logs/memcheck-gpu_train.log" 2>&1 || code=$?
    runs=$(cat "$logs"/memcheck-pnetc.*.log | grep -c 'SUMMARY: 0 errors' || true)
    echo "memcheck gpu_train: exit code $code, $(($(date +%s) - begin)) s, $runs runs without an error" >"$logs/memcheck-gpu_train.line"
}

bad=0
for tool in "$@"; do
    rm -f "$logs/$tool"-*
    case $tool in
    memcheck) programs="$(cd "$build/tests" && echo test_cuda_*) test_peak data_vectors data_conv_vectors" ;;
    racecheck) programs=$(cd "$build/tests" && echo test_cuda_* | sed 's/[^ ]*_huge//; s/[^ ]*_session//') ;;
    *) programs=$(cd "$build/tests" && echo test_cuda_* | sed 's/[^ ]*_huge//') ;;
    esac
    for name in $programs test_cases; do
        case $name in
        test_cuda_*) check "$tool" "$name" "$build/tests/$name" & ;;
        *) check "$tool" "$name" "$build/tests/$name" cuda & ;;
        esac
    done
    [ "$tool" != memcheck ] || train &
    wait
    cat "$logs/$tool"-*.line
    if grep -qv ': exit code 0, ' "$logs/$tool"-*.line; then bad=1; fi
done
exit $bad
