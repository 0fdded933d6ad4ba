#!/bin/sh
# What needs a GPU: sh tests/gpu.sh [BUILD [TOOL ...]]. Without a tool, the tests of that label. With tools of
# compute-sanitizer (memcheck, racecheck, initcheck, synccheck), the programs of these tests under each of them, in their
# short form: memcheck over all of them and over trainings, the others over those that reach every kernel. A line a
# program; what a tool said stands in BUILD/sanitizer. PNET_PROGRAMS names other programs, PNET_LIMIT the seconds that
# one may take (600).
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
bad=0

# report NAME COMMAND...: runs it, and says how it ended and what the tool counted in $log and files of that beginning.
report() {
    name=$1 code=0 begin=$(date +%s)
    shift
    timeout "${PNET_LIMIT:-600}" "$@" >"$log" 2>&1 || code=$?
    counted=$(cat "$log"* | grep SUMMARY | tr -d = | sort | uniq -c | tr -s ' \n' ' ')
    echo "$tool $name: exit code $code, $(($(date +%s) - begin)) s,${counted:- nothing counted}"
    [ $code = 0 ] || bad=1
}

for tool in "$@"; do
    rm -f "$logs/$tool"-*
    options='--error-exitcode 99'
    others='[^ ]*_huge'
    case $tool in
    memcheck) options="$options --leak-check full" others=none ;;
    racecheck) # CUB's own kernels take most of the time there
        options="$options --kernel-name-exclude kernel_substring=_ZN3cub" others='[^ ]*_huge\|[^ ]*_session' ;;
    esac
    programs="test_cases $(cd "$build/tests" && echo test_cuda_* | sed "s/$others//g")"
    [ "$tool" != memcheck ] || programs="$programs test_peak data_vectors data_conv_vectors $(cd tests/cuda && echo gpu_*.sh)"
    for program in ${PNET_PROGRAMS:-$programs}; do
        log=$logs/$tool-$program.log argument=cuda
        case $program in
        gpu_*.sh) # each of its trainings and inferences by itself
            cat >"$logs/pnetc" <<END
#!/bin/sh
exec compute-sanitizer --tool $tool $options --log-file "$log.%p" "$build/pnetc" "\$@"
END
            chmod +x "$logs/pnetc"
            report "$program" env PNETC="$logs/pnetc" bash "tests/cuda/$program"
            continue
            ;;
        test_cuda_*) argument= ;;
        esac
        # shellcheck disable=SC2086
        report "$program" compute-sanitizer --tool "$tool" $options "$build/tests/$program" $argument
    done
done
exit $bad
