#!/bin/sh
# Measures a GPU and prints a table in Markdown that can be sent: convolution 128 -> 128 in every precision, on voxels and in a ball
# of 5 cm, with rows along a curve and at random, and steps of networks.
#
#   sh bench/cards.sh [--device cuda] [--points 700000] [--scene CLOUD].. [--nets 'minkunet18a fcgf ..'] [--repeat 9] [--most N]
#
# Without --scene: three synthetic rooms of --points points each, which it makes. --most N: points of a batch that networks get. The
# GPU's own kernels are measured, and on an H100 or H200 also those that other GPUs get (PNET_CUDA_KERNELS=80, and 86, with less
# shared memory). Times are medians of --repeat runs, in milliseconds; a kernel that is wrong ends the program. Takes some minutes.
# PNET_BUILD: the folder of the build.
set -eu
cd "$(dirname "$0")/.."
build=${PNET_BUILD:-build/release}
device=cuda points=700000 scenes='' nets='minkunet18a fcgf' repeat=9 most=''
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
    case $1 in
    --device) device=$2 ;;
    --points) points=$2 ;;
    --scene) scenes="$scenes --scene $2" ;;
    --nets) nets=$2 ;;
    --repeat) repeat=$2 ;;
    --most) most="--most $2" ;;
    *) echo "cards.sh: no option $1" >&2; exit 2 ;;
    esac
    shift 2
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$scenes" ]; then
    "$build/pnetc" data synth rooms -o "$work/rooms" --count 3 --points "$points" --seed 1 -q
    for cloud in "$work"/rooms/*/*.ply; do scenes="$scenes --scene $cloud"; done
fi

# number NAME PART: the number of that name in $work/json, behind the name of a part
number() {
    sed "s/.*\"$2\"//" "$work/json" | grep -oE "\"$1\": *[0-9.e+-]+" | head -n 1 | sed 's/.*: *//' | awk '{ printf "%.3g", $1 }'
}

# conv KERNELS PRECISION MODE OPTIONS..: three times
conv() {
    kernels=$1 precision=$2
    shift 2
    # shellcheck disable=SC2086
    PNET_CUDA_KERNELS=$kernels "$build/bench/pnet-bench" conv $scenes --channels 128,128 --device "$device" --precision "$precision" \
        --repeat "$repeat" "$@" --json >"$work/json"
    for part in forward dF dW; do printf ' %s (%s) |' "$(number time_ms $part)" "$(number random_ms $part)"; done
}

case $device in
cpu)
    precisions=fp32 kinds=own
    echo "- $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
    ;;
*)
    precisions='bf16 fp16 tf32 fp32' kinds=own
    card=$(nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader | head -n 1)
    echo "- $card"
    case $card in *', 9.0,'*) kinds='own 80 86' ;; esac
    ;;
esac
"$build/pnetc" --version | sed 's/^/- /'
for kind in $kinds; do
    case $kind in
    own) kernels='' ;;
    80) kernels=$kind && printf '\nWith the kernels of other GPUs:\n' ;;
    86) kernels=$kind && printf '\nWith these, and the shared memory of 86, 89 and 120:\n' ;;
    esac
    printf '\n| 128 -> 128, ms (rows at random) | voxel: forward | dF | dW | ball 5 cm: forward | dF | dW |\n|---|---|---|---|---|---|---|\n'
    for precision in $precisions; do
        printf '| %s |' "$precision"
        conv "$kernels" "$precision" --mode voxel
        conv "$kernels" "$precision" --radius 0.05
        echo
    done
    printf '\n| a training step, ms | precision | forward | backward | step with geometry |\n|---|---|---|---|---|\n'
    for net in $nets; do
        precision=${precisions%% *}
        # shellcheck disable=SC2086
        PNET_CUDA_KERNELS=$kernels "$build/bench/pnet-bench" net "models/$net.pnet" $scenes --device "$device" $most \
            --precision "$precision" --repeat "$repeat" --json >"$work/json"
        printf '| %s | %s | %s | %s | %s |\n' "$net" "$precision" "$(number forward_ms orders_ms)" \
            "$(number backward_ms orders_ms)" "$(number step_with_geometry_ms orders_ms)"
    done
done
