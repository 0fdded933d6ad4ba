# The peaks that docs/gpu.md gives for one of the benchmarks' scenes, from any build.
scene=${PNET_TEST_DATA:-}/data/bench/room0.npy
if [ ! -f "$scene" ]; then
    echo 'skipped: PNET_TEST_DATA names no folder with data/bench/room0.npy'
    exit 77
fi
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep GPU | grep -qvE 'H100|H200'; then
    echo 'skipped: this GPU has other kernels'
    exit 77
fi
. tests/cli/common.sh
plan() { # millions of points, MiB, options
    local points=$1M mib=$2
    shift 2
    run 0 plan models/resnet18.pnet --train --device cuda --points "$points" --like "$scene" --json "$@"
    check "$points $*: $(number peak "$out") bytes are not $mib MiB" awk -v b="$(number peak "$out")" -v m="$mib" '
        BEGIN { exit !(b / 1048576 - m < 0.5 && m - b / 1048576 <= 0.5) }'
}
peaks=$(sed -nE 's/^\| peak \| ([0-9,]+) \| ([0-9,]+) \| ([0-9,]+) \|$/\1 \2 \3/p' docs/gpu.md | tr -d ,)
fp32=$(sed -nE 's/^In fp32 the peak for 200M points is ([0-9,]+) MiB\.$/\1/p' docs/gpu.md | tr -d ,)
check "figures of docs/gpu.md: $peaks $fp32" test "$(echo "$peaks $fp32" | wc -w)" = 4
# shellcheck disable=SC2086
set -- $peaks
plan 20 "$1" --precision bf16
plan 100 "$2" --precision bf16
plan 200 "$3" --precision bf16
plan 200 "$fp32"
finish
