#!/usr/bin/env bash
# Native against voxel, and each degradation alone: trains FCGF once for every cell size, mode and seed with all else equal,
# evaluates it on pairs that were not trained on, pair by pair, and writes the tables.
#
#   bench/registration.sh index DATA -o OUT     writes the indices of the real scans in DATA (which has the layout of
#                                               docs/registration-results.md)
#   bench/registration.sh run -o OUT [options]  trains and evaluates the runs that are missing; may be stopped at any time
#   bench/registration.sh table -o OUT          prints tables of the finished runs; --columns "recall rre" selects values
#   bench/registration.sh strata -o OUT         prints recall of two modes (--modes, of the first two) by the number of right
#                                               correspondences, in groups that end at --bounds "5 10 20 40"; --by overlap or
#                                               --by turn: by the overlap of a pair in percent, by the angle of its true pose
#
# --scenes indoors (the default) trains models/fcgf_3dmatch.pnet, --scenes streets models/fcgf_kitti.pnet. OUT/SCENES.yaml lists
# the pairs to train on (--train NAME: OUT/NAME.yaml; `index --train varied` makes one with more pairs). Another OUT/NAME.yaml is
# a test, with its split `test`; NAME-250 is the same test with 250 points drawn a side, NAME-5cm (indoors) with inlier ratios of
# correspondences within 5 cm instead of 10 cm. `turned` and `lowturned` are `kitchen` and `low` with their sources turned at
# random. Runs are folders OUT/runs/CELL-MODE-sSEED. Their weights are removed after they have been evaluated, unless --keep.
#
# Tests that look for causes run only if --tests names them: `rough` and `thin`, views with 15 mm of noise or a third of their
# points; `trained`, the real pairs of the training; `fitted`, those of `kitchen` with poses refined by ICP within 5 cm (`index`
# makes its index if --tests names it).
#
# The networks are FCGF's, the recipe is that of short runs (docs/registration.md): --loss circle at --lr 0.003, and matches
# within --match 1 cells, where FCGF has 1.5. With --reach 1.5 convolutions see a cube of the size of the window of voxels; the
# models have 2.
# --jitter 2cm trains with that much noise on each point instead of 5 mm (streets 1 cm).
#
# Indoors a GPU trains 2500 steps with any rotation of either cloud. A CPU trains 1000 steps with turns of up to 20 degrees,
# because any rotation takes more steps than it has time for. --rotate '[20, 20, 20]' and --steps say otherwise.
#
# Several `run` may work on one OUT at once, each on a GPU of its own (--device cuda:1): each takes the runs that no other has
# begun. --runs "10cm-native-s1 10cm-voxel-s1" does these alone, in that order, instead of all cells, modes and seeds.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
pnetc=${PNETC:-$here/build/release/pnetc}
out='' device=cpu precision=fp32 scenes=indoors model='' cells='' tests='' runs='' columns='' bounds='' by=right
modes='native voxel centre neighbour kernel' seeds='1 2 3'
steps='' train='' rotate='' batch='' lr=0.003 loss=circle match=1 reach=2 jitter='' ransac=50000 minutes=0 keep=no threads=2 workers=4

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
    --device | --precision | --scenes | --model | --cells | --modes | --seeds | --runs | --tests | --steps | --batch | --lr | --loss | \
        --match | --reach | --jitter | --rotate | --train | --columns | --bounds | --by | --ransac | --minutes | --threads | --workers)
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
limit=$(awk -v "minutes=$minutes" 'BEGIN { print int(60 * minutes) }')
config=$out/run_$scenes.yaml
case $scenes in
indoors)
    [ "$device" != cpu ] || : "${rotate:=[20, 20, 20]}" "${steps:=1000}"
    : "${rotate:=xyz}" "${steps:=2500}" "${train:=indoors}"
    : "${model:=$here/models/fcgf_3dmatch.pnet}" "${cells:=10cm 5cm}" "${tests:=kitchen kitchen-250 low views views-250}" "${batch:=8}"
    augment="rotate: $rotate, scale: [0.9, 1.1], jitter: ${jitter:-5mm}"
    ;;
streets)
    : "${rotate:=z}" "${steps:=1000}" "${train:=streets}"
    : "${model:=$here/models/fcgf_kitti.pnet}" "${cells:=60cm 30cm}" "${tests:=drives frames}" "${batch:=4}"
    augment="rotate: $rotate, scale: [0.9, 1.1], jitter: ${jitter:-1cm}"
    ;;
*) die "--scenes is indoors or streets, not $scenes" ;;
esac
case $by in right | overlap | turn) ;; *) die "--by is right, overlap or turn, not $by" ;; esac
case $loss in circle) hardest=no ;; hardest) hardest=yes ;; *) die "--loss is circle or hardest, not $loss" ;; esac

# ---- the indices ----

# index NAME SPLIT: an index of the entries on standard input.
index() {
    { printf 'pnet_dataset: 1\ntask: registration\n%s:\n' "$2" && cat; } >"$out/$1.yaml"
}

# turned TEST NAME: the entries of a test, with their sources turned at random.
turned() { sed '1,3d; s/}$/, turn: xyz}/' "$out/$1.yaml" | index "$2" test; }

# synthetic NAME COUNT ARGUMENTS: makes synthetic pairs, unless they exist.
synthetic() {
    local name=$1 count=$2
    shift 2
    [ -e "$out/$name" ] || "$pnetc" data synth pairs -o "$out/$name" --count "$count" --seed 7 -q "$@" || exit 1
}

# Real pairs and views of the fragments of hotel3, views of rooms of ScanNet, views of synthetic rooms to train on; real pairs of
# redkitchen, those of little overlap (3DLoMatch), and views of it to test on. Views turn as far as real pairs do, and have no
# point in common: two scans never meet the same points, and a network should not learn to find a point again by where its
# neighbours lie to the millimetre. What trains should be as dense as what is tested: synthetic rooms have the points for it,
# scans of ScanNet (50,000 points a flat) have not, so they are not thinned, and few.
index_indoors() {
    local matches=$data/registration/3dmatch
    local hotel=$matches/sun3d-hotel_umd-maryland_hotel3 kitchen=$matches/7-scenes-redkitchen
    local whole='overlap: [40%, 90%], disjoint: yes, noise: 5mm, rotate: [30, 30, 30]'
    local views="$whole, points: [70%, 100%]"
    [ -d "$hotel" ] && [ -d "$kitchen" ] || die "$matches has not the two scenes of 3DMatch"
    synthetic rooms 60 --points 65536
    index indoors train <<END
  - {log: $hotel/3DMatch_gt.log, clouds: "$hotel/cloud_bin_*.ply", missing: skip}
  - {cloud: "$hotel/cloud_bin_*.ply", views: {count: 2, $views}}
  - {cloud: "$data/segmentation/scannet/scene000[0-4]*_vert.npy", views: {count: 4, $whole}}
  - {cloud: "rooms/train/*_target.ply", keep_every: 2, views: {count: 1, $whole}}
END
    index kitchen test <<END
  - {log: $kitchen/3DMatch_gt.log, info: $kitchen/3DMatch_gt.info, clouds: "$kitchen/cloud_bin_*.ply", missing: skip, apart: 2}
END
    index low test <<END
  - {log: $kitchen/3DLoMatch_gt.log, info: $kitchen/3DLoMatch_gt.info, clouds: "$kitchen/cloud_bin_*.ply", missing: skip, apart: 2}
END
    turned kitchen turned
    turned low lowturned
    echo "  - {cloud: \"$kitchen/cloud_bin_*.ply\", views: {count: 5, $views}}" | index views test
    echo "  - {cloud: \"$kitchen/cloud_bin_*.ply\", views: {count: 2, ${views/5mm/15mm}}}" | index rough test
    echo "  - {cloud: \"$kitchen/cloud_bin_*.ply\", views: {count: 2, $whole, points: [30%, 40%]}}" | index thin test
    echo "  - {log: $hotel/3DMatch_gt.log, clouds: \"$hotel/cloud_bin_*.ply\", missing: skip}" | index trained test
    [ "$train" != varied ] || index_varied
    case $tests in
    *fitted*) rm -rf "$out/fitted" && mkdir "$out/fitted" && fitted "$kitchen" >"$out/fitted/all" && index fitted test <"$out/fitted/all" || exit 1 ;;
    esac
}

# More to train on for long runs, from the same scans: pairs of little overlap too, views that overlap less and are more, eight
# times the synthetic rooms.
index_varied() {
    local views='disjoint: yes, noise: 5mm, overlap: [20%, 90%]'
    synthetic many_rooms 250 --points 65536
    index varied train <<END
  - {log: $hotel/3DMatch_gt.log, clouds: "$hotel/cloud_bin_*.ply", missing: skip}
  - {log: $hotel/3DLoMatch_gt.log, clouds: "$hotel/cloud_bin_*.ply", missing: skip}
  - {cloud: "$hotel/cloud_bin_*.ply", views: {count: 4, $views, points: [70%, 100%]}}
  - {cloud: "$data/segmentation/scannet/scene000[0-4]*_vert.npy", views: {count: 12, $views}}
  - {cloud: "many_rooms/train/*_target.ply", views: {count: 1, $views}}
END
}

# fit SOURCE TARGET POSE WITHIN: the pose in a file refined by ICP, as 16 numbers.
fit() { "$pnetc" register "$1" "$2" --from "$3" --icp "$4" --json | sed -nE 's/.*"pose": *\[([^]]*)\].*/\1/p'; }

# fitted FOLDER: the pairs of a scene of 3DMatch, without neighbours and missing clouds, with poses refined by ICP.
fitted() {
    local i j pose
    awk -v "to=$out/fitted/" 'NF == 3 { if (name) close(name); name = to $1 "-" $2 ".txt"; next } { print >name }' \
        "$1/3DMatch_gt.log"
    for pose in "$out"/fitted/*.txt; do
        IFS=- read -r i j <<<"$(basename "$pose" .txt)"
        [ $((j - i)) -gt 1 ] && [ -e "$1/cloud_bin_$i.ply" ] && [ -e "$1/cloud_bin_$j.ply" ] || continue
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || return 1; done
        OMP_NUM_THREADS=1 fit "$1/cloud_bin_$j.ply" "$1/cloud_bin_$i.ply" "$pose" 5cm >"${pose%.txt}.fit" &
    done
    wait
    for pose in "$out"/fitted/*.fit; do
        IFS=- read -r i j <<<"$(basename "$pose" .fit)"
        [ -s "$pose" ] || die "no pose for $i and $j"
        echo "  - {source: $1/cloud_bin_$j.ply, target: $1/cloud_bin_$i.ply, pose: [$(cat "$pose")]}"
    done
}

# refined SEQUENCE: the pose of frame 9 onto frame 0, refined by ICP within 20 cm as FCGF does, as 16 numbers.
refined() {
    local frames=$data/segmentation/semantickitti/sequences/$1/velodyne
    awk -v id="kitti_$1_000000_000009" '
        index($0, "\"" id "\"") { found = 1 }
        found && /T_target_source/ { on = 1; next }
        on && /[0-9]/ { gsub(/[,\]\[]/, " "); printf "%s ", $0; if (++n == 16) exit }' "$data/registration/pairs.json" \
        >"$out/pose_$1.txt"
    fit "$frames/000009.bin" "$frames/000000.bin" "$out/pose_$1.txt" 20cm
}

# Two real pairs, views of their frames and synthetic streets to train on; two real pairs and views of frames to test on.
index_streets() {
    local kitti=$data/segmentation/semantickitti/sequences s
    local views='overlap: [50%, 90%], disjoint: yes, points: [70%, 100%], noise: 1cm, rotate: z, shift: 2m, level: yes'
    [ -d "$kitti" ] || die "$kitti is missing"
    synthetic streets 60 --scene street
    {
        for s in 00 03; do
            echo "  - {source: $kitti/$s/velodyne/000009.bin, target: $kitti/$s/velodyne/000000.bin, pose: [$(refined $s)]}"
        done
        for s in 00 03; do echo "  - {cloud: \"$kitti/$s/velodyne/*.bin\", views: {count: 8, $views}}"; done
        awk '/^train:/ { on = 1; next } /^val:/ { on = 0 } on' "$out/streets/dataset.yaml" | sed 's,: train/,: streets/train/,g'
    } | index streets train
    for s in 04 10; do
        echo "  - {source: $kitti/$s/velodyne/000009.bin, target: $kitti/$s/velodyne/000000.bin, pose: [$(refined $s)]}"
    done | index drives test
    for s in 04 10; do echo "  - {cloud: \"$kitti/$s/velodyne/*.bin\", views: {count: 25, $views}}"; done | index frames test
}

# ---- one run ----

# Replaces the file in one step, because runs of other seeds may write at the same time.
write_config() {
    cat >"$config.$$" <<END
data: $train.yaml
steps: $steps
batch_size: $batch
optimizer: {name: adamw}
lr: $lr
schedule: {name: onecycle}
weight_decay: 1e-4
eval_every: 0
save_every: {steps: 250}
augment: {$augment}
workers: $workers
END
    mv "$config.$$" "$config"
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
    [ "$limit" = 0 ] && { echo 1000000 && return; }
    echo $((limit - SECONDS))
}

# train CELL MODE SEED FOLDER: 0 when it is finished, 1 when time is up, 2 when it failed; it goes on where it was stopped.
train() {
    local left code
    if [ -s "$4/train.json" ]; then
        [ -d "$4/last" ] && return 0
        find "$4" -mindepth 1 -delete # a test is asked for that its weights have not seen, and they are gone
    fi
    left=$(seconds_left)
    [ "$left" -gt 0 ] || return 1
    mkdir -p "$4"
    # shellcheck disable=SC2046
    OMP_NUM_THREADS=$threads timeout --foreground -s INT "$left" "$pnetc" train "$model" --config "$config" -o "$4" --resume \
        --without-optimizer --set "v=$1" --set "hardest=$hardest" --set "match=$match" --set "reach=$reach" \
        $(mode_options "$2") --seed "$3" --device "$device" --precision "$precision" -q --json >"$4/train.part" 2>"$4/train.log"
    code=$?
    [ $code = 130 ] || [ $code = 124 ] && return 1
    [ $code = 0 ] || { cat "$4/train.log" >&2 && return 2; }
    mv "$4/train.part" "$4/train.json"
}

# test_options TEST: what is not in its index.
test_options() {
    case $1 in
    *-*m) echo "--set near=${1#*-}" ;;
    *-*) echo "--set points=${1#*-}" ;;
    esac
}

# evaluate TEST MODE FOLDER
evaluate() {
    [ -s "$3/$1.json" ] && return 0
    # shellcheck disable=SC2046
    OMP_NUM_THREADS=$threads "$pnetc" eval "$model" --weights "$3/last" --config "$config" --data "$out/${1%%-*}.yaml" \
        --split test --set "ransac=$ransac" --set "reach=$reach" $(test_options "$1") $(mode_options "$2") --device "$device" \
        --precision "$precision" --json --each "$3/$1.jsonl" >"$3/$1.part" 2>"$3/$1.log" || { cat "$3/$1.log" >&2 && return 1; }
    mv "$3/$1.part" "$3/$1.json"
}

# All tests of a run, beside the training of the next one; then its weights have served.
finish_run() { # MODE FOLDER
    local t
    for t in $tests; do evaluate "$t" "$1" "$2" || return 1; done
    [ $keep = yes ] || rm -rf "$2/last" "$2/best"
    echo "$(basename "$2"): evaluated, $SECONDS s"
}

# CELL-MODE-sSEED of all runs. Seeds outermost: what there is time for is a whole table.
all_runs() {
    local cell mode seed
    for seed in $seeds; do
        for cell in $cells; do
            for mode in $modes; do echo "$cell-$mode-s$seed"; done
        done
    done
}

is_finished() { # FOLDER
    local t
    for t in $tests; do [ -s "$1/$t.json" ] || return 1; done
}

run_all() {
    local name cell mode seed folder claim code failed=0 waiting=''
    [ -s "$out/$train.yaml" ] || die "$out/$train.yaml is missing: bench/registration.sh index DATA -o $out"
    write_config
    for name in ${runs:-$(all_runs)}; do
        IFS=- read -r cell mode seed <<<"$name"
        mode_options "$mode" >/dev/null # ends here if there is no such mode
        folder=$out/runs/$name
        mkdir -p "$folder" "$out/claims"
        exec {claim}>"$out/claims/$name" # its evaluation inherits the lock
        { flock -n "$claim" && ! is_finished "$folder"; } || { exec {claim}>&- && continue; }
        train "$cell" "$mode" "${seed#s}" "$folder"
        code=$?
        case $code in
        0)
            echo "$name: trained, $SECONDS s"
            [ -z "$waiting" ] || wait "$waiting" || failed=1
            finish_run "$mode" "$folder" &
            waiting=$!
            ;;
        1) echo "time is up at $name" ;;
        *) failed=1 ;;
        esac
        exec {claim}>&-
        [ $code = 1 ] && break
    done
    [ -z "$waiting" ] || wait "$waiting" || failed=1
    return $failed
}

# files_of TEST: what its tables are made of, in `files`; 1 if there is nothing.
files_of() {
    local cell mode seed folder
    files=()
    for cell in $cells; do
        for mode in $modes; do
            for seed in $seeds; do
                folder=$out/runs/$cell-$mode-s$seed
                [ -s "$folder/$1.json" ] && files+=("$folder/train.json" "$folder/metrics.jsonl" "$folder/$1.json" "$folder/$1.jsonl")
            done
        done
    done
    [ ${#files[@]} -gt 0 ]
}

# One table of values, one of their differences from native's and one of the pairs for all tests, then what the networks cost.
print_tables() {
    local t table head
    for table in values against pairs; do
        head=yes
        for t in $tests; do
            files_of "$t" || die "no run of $t is finished"
            awk -v "test=$t" -v "table=$table" -v "columns=$columns" -v "head=$head" -f "$here/bench/registration_table.awk" "${files[@]}" ||
                exit 2
            head=no
        done
        echo
    done
    files_of "${tests%% *}"
    awk -v "test=${tests%% *}" -v table=training -f "$here/bench/registration_table.awk" "${files[@]}"
}

# Recall of two modes by what --by says.
print_strata() {
    local t head=yes first second
    read -r first second _ <<<"$modes"
    [ -n "$second" ] || die 'strata are of two modes'
    modes="$first $second"
    for t in $tests; do
        files_of "$t" || die "no run of $t is finished"
        awk -v "test=$t" -v table=strata -v "by=$by" -v "bounds=$bounds" -v "head=$head" -f "$here/bench/registration_table.awk" "${files[@]}" || exit 2
        head=no
    done
}

case $command in
index)
    [ -d "$data" ] || die 'which data? index DATA -o OUT'
    data=$(cd "$data" && pwd)
    mkdir -p "$out"
    index_"$scenes"
    ;;
run) run_all ;;
table) print_tables ;;
strata) print_strata ;;
*) die 'index, run, table or strata' ;;
esac
