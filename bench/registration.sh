#!/usr/bin/env bash
# Native against voxel, and each degradation alone: trains FCGF once for every cell size, mode and seed with all else equal,
# evaluates it on pairs that were not trained on, pair by pair, and writes the tables.
#
#   bench/registration.sh index DATA -o OUT     writes the indices of the real scans in DATA (the layout of docs/registration.md)
#   bench/registration.sh run -o OUT [options]  trains and evaluates what is not there yet; may be stopped at any time
#   bench/registration.sh table -o OUT          prints the tables of what is there
#
# OUT holds train.yaml and one NAME.yaml for each test (its split `test`); runs go to OUT/runs/CELL-MODE-sSEED. Their weights
# are removed once they have been evaluated, unless --keep.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
pnetc=${PNETC:-$here/build/release/pnetc}
out='' device=cpu precision=fp32 model=$here/models/fcgf_3dmatch.pnet
cells='10cm 5cm' modes='native voxel centre neighbour kernel' seeds='1 2 3' tests='kitchen views'
steps=1000 batch=8 lr=0.003 loss=circle ransac=50000 minutes=0 keep=no threads=2

die() {
    echo "registration.sh: $*" >&2
    exit 2
}

command=${1:-}
[ $# -gt 0 ] && shift
data=''
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2 && shift ;;
    --device | --precision | --model | --cells | --modes | --seeds | --tests | --steps | --batch | --lr | --loss | --ransac | \
        --minutes | --threads)
        [ $# -gt 1 ] || die "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift
        ;;
    --keep) keep=yes ;;
    -*) die "no option $1" ;;
    *) data=$1 ;;
    esac
    shift
done
[ -n "$out" ] || die 'where to? -o OUT'
case $loss in circle) hardest=no ;; hardest) hardest=yes ;; *) die "--loss is circle or hardest, not $loss" ;; esac

# ---- the indices ----

# Real pairs and views of the fragments of hotel3, views of rooms of ScanNet, views of synthetic rooms to train on; real pairs
# and views of redkitchen to test on. Views turn as far as real pairs do.
write_indices() {
    local matches=$data/registration/3dmatch
    local hotel=$matches/sun3d-hotel_umd-maryland_hotel3 kitchen=$matches/7-scenes-redkitchen
    local views='overlap: [40%, 90%], points: [50%, 100%], noise: 5mm, rotate: [30, 30, 30]'
    [ -d "$hotel" ] && [ -d "$kitchen" ] || die "$matches has not the two scenes of 3DMatch"
    mkdir -p "$out"
    [ -e "$out/synthetic" ] || "$pnetc" data synth pairs -o "$out/synthetic" --count 60 --seed 7 -q || exit 1
    cat >"$out/train.yaml" <<END
pnet_dataset: 1
task: registration
train:
  - {log: $hotel/3DMatch_gt.log, clouds: "$hotel/cloud_bin_*.ply", missing: skip}
  - {cloud: "$hotel/cloud_bin_*.ply", views: {count: 1, $views}}
  - {cloud: "$data/segmentation/scannet/scene000[0-4]*_vert.npy", views: {count: 8, $views}}
  - {cloud: "synthetic/train/*_target.ply", views: {count: 1, $views}}
END
    cat >"$out/kitchen.yaml" <<END
pnet_dataset: 1
task: registration
test: [{log: $kitchen/3DMatch_gt.log, info: $kitchen/3DMatch_gt.info, clouds: "$kitchen/cloud_bin_*.ply", missing: skip, apart: 2}]
END
    cat >"$out/views.yaml" <<END
pnet_dataset: 1
task: registration
test: [{cloud: "$kitchen/cloud_bin_*.ply", views: {count: 5, $views}}]
END
}

# ---- one run ----

write_config() {
    cat >"$out/run.yaml" <<END
data: train.yaml
steps: $steps
batch_size: $batch
optimizer: {name: adamw}
lr: $lr
schedule: {name: onecycle}
weight_decay: 1e-4
eval_every: 0
save_every: {steps: 250}
augment: {rotate: [20, 20, 20], scale: [0.9, 1.1], jitter: 5mm}
workers: 4
END
}

# mode_options MODE: as pnetc takes them.
mode_options() {
    case $1 in
    native | voxel) echo "--mode $1" ;;
    centre | neighbour | kernel) echo "--degrade $1" ;;
    *) die "no mode $1" ;;
    esac
}

seconds_left() {
    [ "$minutes" = 0 ] && { echo 1000000 && return; }
    echo $((60 * minutes - SECONDS))
}

# train CELL MODE SEED FOLDER: 0 when it is finished, 1 when time is up; it goes on where it was stopped.
train() {
    [ -s "$4/train.json" ] && return 0
    local left code
    left=$(seconds_left)
    [ "$left" -gt 0 ] || return 1
    mkdir -p "$4"
    # shellcheck disable=SC2046
    OMP_NUM_THREADS=$threads timeout -s INT "$left" "$pnetc" train "$model" --config "$out/run.yaml" -o "$4" --resume \
        --without-optimizer --set "v=$1" --set "hardest=$hardest" $(mode_options "$2") --seed "$3" --device "$device" \
        --precision "$precision" -q --json >"$4/train.part" 2>"$4/train.log"
    code=$?
    [ $code = 130 ] || [ $code = 124 ] && return 1
    [ $code = 0 ] || { cat "$4/train.log" >&2 && exit 1; }
    mv "$4/train.part" "$4/train.json"
}

# evaluate TEST MODE FOLDER
evaluate() {
    [ -s "$3/$1.json" ] && return 0
    # shellcheck disable=SC2046
    OMP_NUM_THREADS=$threads "$pnetc" eval "$model" --weights "$3/last" --config "$out/run.yaml" --data "$out/$1.yaml" \
        --split test --set "ransac=$ransac" $(mode_options "$2") --device "$device" --precision "$precision" --json --each "$3/$1.jsonl" \
        >"$3/$1.part" 2>"$3/$1.log" || { cat "$3/$1.log" >&2 && return 1; }
    mv "$3/$1.part" "$3/$1.json"
}

# All tests of a run, beside the training of the next one; then its weights have served.
finish_run() { # MODE FOLDER
    local t
    for t in $tests; do evaluate "$t" "$1" "$2" || return 1; done
    [ $keep = yes ] || rm -rf "$2/last" "$2/best"
    echo "$(basename "$2"): evaluated, $SECONDS s"
}

run_all() {
    local cell mode seed folder failed=0 waiting='' p
    [ -s "$out/train.yaml" ] || die "$out/train.yaml is missing: bench/registration.sh index DATA -o $out"
    write_config
    # seeds outermost: what there is time for is a whole table
    for seed in $seeds; do
        for cell in $cells; do
            for mode in $modes; do
                folder=$out/runs/$cell-$mode-s$seed
                train "$cell" "$mode" "$seed" "$folder" || { echo "time is up at $(basename "$folder")" && break 3; }
                echo "$(basename "$folder"): trained, $SECONDS s"
                [ -z "$waiting" ] || wait "$waiting" || failed=1
                finish_run "$mode" "$folder" &
                waiting=$!
            done
        done
    done
    for p in $waiting; do wait "$p" || failed=1; done
    return $failed
}

print_tables() {
    local t cell mode seed folder
    for t in $tests; do
        set --
        for cell in $cells; do
            for mode in $modes; do
                for seed in $seeds; do
                    folder=$out/runs/$cell-$mode-s$seed
                    [ -s "$folder/$t.json" ] && set -- "$@" "$folder/train.json" "$folder/$t.json" "$folder/$t.jsonl"
                done
            done
        done
        [ $# -gt 0 ] || die "no run of $t is finished"
        printf '### %s\n\n' "$t"
        awk -v "test=$t" -f "$here/bench/registration_table.awk" "$@"
        echo
    done
}

case $command in
index) [ -n "$data" ] || die 'which data? index DATA -o OUT' && data=$(cd "$data" && pwd) && write_indices ;;
run) run_all ;;
table) print_tables ;;
*) die 'index, run or table' ;;
esac
