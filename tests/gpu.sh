#!/bin/sh
# Runs the tests that need a GPU: sh tests/gpu.sh [BUILD [TOOL ...]]. Without a tool, the tests of that label. With tools of
# compute-sanitizer (memcheck, racecheck, initcheck, synccheck), the programs of these tests under each of them, in their
# short form: memcheck over all of them and over trainings, the others over those that reach every kernel. A line a
# program; BUILD/sanitizer has the output of the tools. PNET_PROGRAMS names other programs ("test_cases:conv": with that
# word, here the cases of one op), PNET_LIMIT the seconds that one may take (600), PNET_JOBS how many run at once (3:
# launches are what takes time under these tools, not work). With PNET_CUDA_KERNELS=80 in the environment an H100 or H200 runs the
# kernels of convolution and linear layers for other GPUs, with 86 as if it had 99 KB of shared memory.
set -eu
cd "$(dirname "$0")/.."
one=no
if [ "${1:-}" = --one ]; then
    one=yes
    shift
fi
build=${1:-build/release}
[ $# -gt 0 ] && shift
if [ $# = 0 ]; then
    ctest --test-dir "$build" --label-regex gpu --no-tests=error --output-on-failure
    exit
fi
logs=$build/sanitizer

# --one BUILD TOOL PROGRAM: runs it, and prints its end and the tool's counts in $log and in files with that prefix.
if [ $one = yes ]; then
    tool=$1 program=${2%:*} op='' log=$logs/$1-$2.log code=0 begin=$(date +%s)
    case $2 in *:*) op=${2#*:} ;; esac
    # programs of a script may have nothing to do with a GPU
    set -- compute-sanitizer --tool "$tool" --error-exitcode 99 --require-cuda-init no
    case $tool in
    memcheck) set -- "$@" --leak-check full ;;
    synccheck) set -- "$@" --num-cuda-barriers 1024 ;; # it would count those that the compiler knows
    racecheck) set -- "$@" --kernel-name-exclude kernel_substring=_ZN3cub ;; # CUB's own: most of the time
    esac
    case $program in
    *.sh) # each of its trainings and inferences by itself
        printf '#!/bin/sh\nexec %s --log-file "%s.%%p" "%s" "$@"\n' "$*" "$log" "$build/pnetc" >"$logs/$program-pnetc"
        chmod +x "$logs/$program-pnetc"
        set -- env PNETC="$logs/$program-pnetc" PNET_TEST_DEVICE=cuda bash tests/c*/"$program"
        ;;
    test_cuda_*) set -- "$@" "$build/tests/$program" ${op:+"$op"} ;;
    *) set -- "$@" "$build/tests/$program" cuda ${op:+"$op"} ;;
    esac
    timeout "${PNET_LIMIT:-600}" "$@" >"$log" 2>&1 || code=$?
    counted=$(cat "$log"* | grep SUMMARY | tr -d = | sort | uniq -c | tr -s ' \n' ' ')
    echo "$(basename "$log" .log): exit code $code, $(($(date +%s) - begin)) s,${counted:- nothing counted}"
    exit "$code"
fi

export OMP_WAIT_POLICY=passive OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
: "${PNET_TEST_DATA:=$(sed -n 's/^PNET_TEST_DATA:PATH=//p' "$build/CMakeCache.txt")}"
export PNET_TEST_DATA
mkdir -p "$logs"
bad=0
for tool in "$@"; do
    rm -f "$logs/$tool"-*
    export PNET_SHORT=1
    case $tool in
    memcheck) others=none ;;
    racecheck) PNET_SHORT=races others='[^ ]*_huge\|[^ ]*_runner' ;;
    *) others='[^ ]*_huge' ;;
    esac
    programs=$(cd "$build/tests" && echo test_cases test_cuda_* | sed "s/$others//g; s/test_cuda_conv/&:narrow &:wide/; s/test_cuda_attend/&:8 &:16 &:32 &:64 &:128/; s/test_cuda_apml/&:places &:arguments &:rounds &:replays/")
    [ "$tool" != memcheck ] || programs="$programs test_peak test_tune test_slots data_vectors data_conv_vectors
data_train.sh $(cd tests/cuda && echo gpu_*.sh)"
    # shellcheck disable=SC2086
    printf '%s\n' ${PNET_PROGRAMS:-$programs} |
        xargs -P "${PNET_JOBS:-3}" -n 1 sh tests/gpu.sh --one "$build" "$tool" || bad=1
done
exit $bad
