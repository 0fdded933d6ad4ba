#!/bin/sh
# How networks of attention grow with the points, and what the orders of attention make of their results.
#
#   sh bench/attention.sh scaling -o OUT [options]    times the cases that are missing
#   sh bench/attention.sh quality -o OUT [options]    trains and evaluates the runs that are missing
#   sh bench/attention.sh table OUT [options]         prints tables of what is there, and draws OUT/scaling-*.svg
#
# All may be stopped at any time, and go on where they were.
#
# scaling: each network on one cloud at a time, inference and training. A case is a file OUT/scaling/SCENE-NET-POINTS.json. Points
# lie in cells of their own, so that the finest level has as many rows; fewer of them are a piece of the cloud. Options:
#   --points '100000 200000 ..'    --runs 20: the first one is dropped, of the others the median is taken
#   --scenes 'rooms streets'       --cell 0.01: metres, of the finest level
#   --nets 'flash3d flash3d_wide ptv3 flash3d_z'    flash3d_z: flash3d with the order z in all layers
#   --check N                      points on which the network is checked first (2000)
#
# quality: models/flash3d_wide.pnet with all else equal, each list of orders with shifts of the scopes and without. A run is a
# folder OUT/runs/DATA-ORDERS-SHIFTS-sSEED, DATA being rooms or data. Options:
#   --data DATASET                 in place of synthetic rooms: a data set with positions, colours and labels
#   --classes N                    that it has (12)             --split test    that is evaluated
#   --colours 1/255                scale of its colours red, green and blue, where they do not reach from 0 to 1
#   --orders 'z curves hashes'     z; z, hilbert and both transposed; xor_div, z, xor_mod, z_mod
#   --shifts 'yes no'              --seeds '1 2 3'              --steps 2000    --batch 4    --lr 0.002
#   --clouds 240                   rooms, of which a tenth is for the test      --cloud-points 20000    of a room
#   --minutes N                    stops training after N minutes (exit code 1 if runs are missing)
#
# Both: --device cpu|cuda    --precision fp32|bf16 (cuda: bf16)    --set 'c=16 ..': params of the networks    --threads N
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
pnetc=${PNETC:-$here/build/release/pnetc}
bench=${PNET_BENCH:-$(dirname "$pnetc")/bench/pnet-bench}
out='' device=cpu precision='' set='' threads=2
points='100000 200000 300000 400000 500000 600000' runs=20 scenes='rooms streets' cell=0.01 check=2000
nets='flash3d flash3d_wide ptv3 flash3d_z'
data='' colours='' classes=12 split=test orders='z curves hashes' shifts='yes no' seeds='1 2 3' steps=2000 batch=4 lr=0.002 clouds=240
cloud_points=20000 minutes=0

die() {
    echo "attention.sh: $*" >&2
    exit 2
}

command=${1:-}
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
    case $1 in
    -o) [ $# -gt 1 ] || die '-o needs a folder' && out=$2 && shift ;;
    --points | --runs | --scenes | --cell | --nets | --check | --data | --colours | --classes | --split | --orders | --shifts | --seeds | \
        --steps | --batch | --lr | --clouds | --cloud-points | --minutes | --device | --precision | --set | --threads)
        [ $# -gt 1 ] || die "$1 needs a value"
        name=$(echo "${1#--}" | tr - _)
        eval "$name=\$2"
        shift
        ;;
    -*) die "no option $1" ;;
    *) [ -z "$out" ] || die "what is $1?" && out=$1 ;;
    esac
    shift
done
[ -n "$out" ] || die 'where to? -o OUT'
[ -n "$precision" ] || { [ "${device%%:*}" = cuda ] && precision=bf16 || precision=fp32; }
export OMP_NUM_THREADS="$threads"

# The functions of awk that read what programs print.
json='
    function number(text, key,    at, rest) {
        at = index(text, "\"" key "\":")
        if (!at) return ""
        rest = substr(text, at + length(key) + 3)
        sub(/[,}].*/, "", rest)
        return rest + 0
    }
    function inside(text, key) { return substr(text, index(text, "\"" key "\":")) }
    function shown(v) { return sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 0.1 ? "%.2f" : "%.3f", v) }'

# ---- scaling ----

# The cloud of a scene, with more cells than the most points that are asked for.
make_scene() {
    kind=$1 beams=''
    [ "$kind" = streets ] && kind=lidar && beams='--beams 128'
    most=$(echo "$points" | tr ' ' '\n' | sort -n | tail -n 1)
    count=$((most * 2 > 20000 ? most * 2 : 20000))
    folder=$out/scenes/$1-$count
    scene=$folder/train/000000.ply
    mkdir -p "$out/scenes"
    exec 9>"$out/scenes/claim" # of those that begin at once, one makes the scene
    flock 9
    # shellcheck disable=SC2086
    [ -s "$folder/dataset.yaml" ] ||
        "$pnetc" data synth "$kind" -o "$folder" --count 1 --points "$count" $beams --seed 1 -q || return 1
    exec 9>&-
}

# time_case SCENE NET POINTS
time_case() {
    file=$out/scaling/$1-$2-$3.json
    model=${2%_z}
    exec 9>"$file.claim"
    flock -n 9 || return 0 # another `scaling` is at it
    [ -s "$file" ] && return 0
    wanted=$3
    if [ "$model" = "$2" ]; then set -- --set "v=${cell}m"; else set -- --set "v=${cell}m" --set 'order="z"'; fi
    for s in $set; do set -- "$@" --set "$s"; done
    "$bench" net "$here/models/$model.pnet" --scene "$scene" --thin "$cell" --most "$wanted" --device "$device" \
        --precision "$precision" --repeat $((runs - 1)) --check-points "$check" --json "$@" >"$file.part" || return 1
    grep -q "\"points\": *$wanted," "$file.part" ||
        { echo "attention.sh: $scene has fewer than $wanted cells" >&2 && return 1; }
    mv "$file.part" "$file"
}

scaling() {
    [ "$runs" -gt 1 ] || die '--runs is 2 at least: the first one is dropped'
    mkdir -p "$out/scaling" || exit 1
    for place in $scenes; do
        case $place in rooms | streets) ;; *) die "no scene $place: rooms or streets" ;; esac
        make_scene "$place" || exit 1
        for net in $nets; do
            [ -s "$here/models/${net%_z}.pnet" ] || die "there is no models/${net%_z}.pnet"
            for count in $points; do
                time_case "$place" "$net" "$count" || { rm -f "$out/scaling/$place-$net-$count.json.part" && exit 1; }
                echo "$place, $net, $count points: done"
            done
        done
    done
}

# cases SCENE: a line of JSON for each case, behind its network and its points.
cases() {
    for net in $nets; do
        for count in $points; do
            file=$out/scaling/$1-$net-$count.json
            [ ! -s "$file" ] || echo "$net $count $(cat "$file")"
        done
    done
}

# chart SCENE TITLE Y FILE: of lines "points value network", from the cases.
chart() {
    cases "$1" | awk "$json"'
        { of[1] = number($0, "inference_ms") + number($0, "geometry_ms"); of[2] = number($0, "step_with_geometry_ms") }
        memory { of[1] = number($0, "inference_peak_bytes") / 1048576; of[2] = number($0, "training_peak_bytes") / 1048576 }
        { print $2, of[1], $1 ", inference"; print $2, of[2], $1 ", training" }' "memory=$5" - |
        "$bench" chart --title "$2, ${device%%:*}, $precision" --x points --y "$3" >"$4" || exit 1
    echo "$4"
}

scaling_table() {
    cat <<END

### $1

| network | points | inference, ms | geometry | orders | % | attention | training, ms | attention | inference, MiB | training |
|---|---|---|---|---|---|---|---|---|---|---|
END
    cases "$1" | awk "$json"'
        {
            geometry = number($0, "geometry_ms"); orders = number($0, "orders_ms")
            inference = number($0, "inference_ms") + geometry; training = number($0, "step_with_geometry_ms")
            attend = inside($0, "attend"); forward = number(attend, "forward_ms"); backward = number(attend, "backward_ms")
            memory[1] = number($0, "inference_peak_bytes") / 1048576; memory[2] = number($0, "training_peak_bytes") / 1048576
            printf "| %s | %d | %s | %s | %s | %.2f | ", $1, $2, shown(inference), shown(geometry), shown(orders),
                100 * orders / inference
            printf "%s | %s | %s | %s | %s |\n", shown(forward), shown(training), shown(forward + backward), shown(memory[1]),
                shown(memory[2])
            if (!($1 in n)) net[++nets] = $1
            grow($1, 1, log($2), log(inference)); grow($1, 2, log($2), log(training)); grow($1, 3, log($2), log(memory[2]))
            n[$1]++
        }
        function grow(name, what, x, y,    k) {
            k = name "," what
            sx[k] += x; sy[k] += y; sxx[k] += x * x; sxy[k] += x * y
        }
        function exponent(name, what,    k, wide) {
            k = name "," what
            wide = n[name] * sxx[k] - sx[k] * sx[k]
            return n[name] > 1 && wide > 0 ? sprintf("%.2f", (n[name] * sxy[k] - sx[k] * sy[k]) / wide) : "-"
        }
        END {
            print "\n| network | inference grows as points to the | training | memory of training |\n|---|---|---|---|"
            for (i = 1; i <= nets; i++) printf "| %s | %s | %s | %s |\n", net[i], exponent(net[i], 1), exponent(net[i], 2),
                exponent(net[i], 3)
        }'
    echo
    chart "$1" "Time, $1" milliseconds "$out/scaling-$1.svg" 0
    chart "$1" "Memory, $1" MiB "$out/scaling-$1-memory.svg" 1
}

# ---- quality ----

seconds_left() {
    [ "$minutes" = 0 ] && echo 1000000 && return
    echo $((60 * minutes - $(date +%s) + begun))
}

orders_of() {
    case $1 in
    z) echo '["z"]' ;;
    curves) echo '["z", "z_trans", "hilbert", "hilbert_trans"]' ;;
    hashes) echo '["xor_div", "z", "xor_mod", "z_mod"]' ;;
    *) die "no orders $1: z, curves or hashes" ;;
    esac
}

# with_params ORDERS SHIFTS COMMAND...: runs the command with the params of a run behind it.
with_params() {
    list=$(orders_of "$1")
    moved=$2
    shift 2
    set -- "$@" --set "orders=$list" --set "shifts=$moved" --set "classes=$classes"
    for s in $set; do set -- "$@" --set "$s"; done
    "$@"
}

# train ORDERS SHIFTS SEED FOLDER: 0 when it is finished, 1 when time is up, 2 when it failed.
train() {
    [ -s "$4/train.json" ] && return 0
    left=$(seconds_left)
    [ "$left" -gt 0 ] || return 1
    with_params "$1" "$2" timeout --foreground -s INT "$left" "$pnetc" train "$here/models/flash3d_wide.pnet" \
        --config "$config" -o "$4" --resume --without-optimizer --seed "$3" --device "$device" --precision "$precision" -q \
        --json >"$4/train.part" 2>"$4/train.log"
    code=$?
    [ $code = 130 ] || [ $code = 124 ] && return 1
    [ $code = 0 ] || { cat "$4/train.log" >&2 && return 2; }
    mv "$4/train.part" "$4/train.json"
}

evaluate() { # ORDERS SHIFTS FOLDER
    [ -s "$3/test.json" ] && return 0
    with_params "$1" "$2" "$pnetc" eval "$here/models/flash3d_wide.pnet" --weights "$3/last" --config "$config" \
        --split "$split" --device "$device" --precision "$precision" --json >"$3/test.part" 2>"$3/test.log" ||
        { cat "$3/test.log" >&2 && return 2; }
    mv "$3/test.part" "$3/test.json"
}

# Makes what all runs share. Runs may begin at the same time, so the config is replaced in one step.
prepare() {
    mkdir -p "$out/runs" "$out/claims" || exit 1
    place=rooms config=$out/rooms.yaml
    if [ -n "$data" ]; then
        [ -e "$data" ] || die "there is no $data"
        place=data config=$out/data.yaml
        data=$(realpath "$data")
    else
        data=$(realpath "$out")/rooms
        exec 9>"$out/claim" # of those that begin at once, one makes the rooms
        flock 9
        [ -s "$data/dataset.yaml" ] ||
            "$pnetc" data synth rooms -o "$data" --count "$clouds" --points "$cloud_points" --seed 7 -q || exit 1
        exec 9>&-
    fi
    cat >"$config.$$" <<END
data: $data
steps: $steps
batch_size: $batch
optimizer: adamw
lr: $lr
weight_decay: 0.05
schedule: {name: onecycle, warmup: 5%}
augment: {rotate: z, flip: [x], scale: [0.9, 1.1]}
workers: 1
save_every: {steps: 200}
eval_every: 0
END
    [ -z "$colours" ] ||
        echo "inputs: {cloud: {rgb: {field: [red, green, blue], scale: $colours}}}" >>"$config.$$"
    mv "$config.$$" "$config"
}

quality() {
    begun=$(date +%s)
    for kind in $orders; do orders_of "$kind" >/dev/null || exit 2; done
    for moved in $shifts; do case $moved in yes | no) ;; *) die '--shifts is yes, no, or both' ;; esac; done
    prepare
    for seed in $seeds; do
        for kind in $orders; do
            for moved in $shifts; do
                folder=$out/runs/$place-$kind-$moved-s$seed
                mkdir -p "$folder"
                exec 9>"$out/claims/${folder##*/}" # a run folder takes only what a run made
                flock -n 9 || continue # another `quality` is at it
                train "$kind" "$moved" "$seed" "$folder"
                code=$?
                [ $code = 0 ] && { evaluate "$kind" "$moved" "$folder" || code=2; }
                [ $code = 2 ] && exit 2
                [ $code = 1 ] && echo "time is up at $place-$kind-$moved-s$seed" && exit 1
                echo "$place-$kind-$moved-s$seed: done"
            done
        done
    done
}

# A row for each list of orders: means over the seeds, and the standard deviation between them.
quality_table() {
    cat <<END

### Orders, $1

| orders | shifts | seeds | mIoU, % | accuracy, % | loss of the test | step, ms | training, MiB |
|---|---|---|---|---|---|---|---|
END
    place=$1
    for kind in $orders; do
        for moved in $shifts; do
            set --
            for folder in "$out/runs/$place-$kind-$moved-s"*; do
                [ ! -s "$folder/test.json" ] || set -- "$@" "$folder/test.json" "$folder/train.json" "$folder/metrics.jsonl"
            done
            [ $# = 0 ] || awk "$json"'
                function add(key, v) { n[key]++; sum[key] += v; square[key] += v * v }
                function mean(key, digits,    m, left) {
                    if (!n[key]) return "-"
                    m = sum[key] / n[key]
                    left = square[key] - n[key] * m * m
                    return sprintf("%.*f ± %.*f", digits, m, digits, n[key] > 1 && left > 0 ? sqrt(left / (n[key] - 1)) : 0)
                }
                FILENAME ~ /test\.json$/ {
                    add("iou", 100 * number($0, "iou")); add("oa", 100 * number($0, "oa")); add("loss", number($0, "ce"))
                    next
                }
                FILENAME ~ /train\.json$/ { if (/"peak_bytes"/) add("peak", number($0, "peak_bytes") / 1048576); next }
                # times of steps: the differences between those of a run; the first 20 steps are left out
                FNR == 1 { from = "" }
                FNR == 20 { from = number($0, "time_s") }
                FNR > 20 { last[FILENAME] = 1000 * (number($0, "time_s") - from) / (FNR - 20) }
                END {
                    for (f in last) add("step", last[f])
                    printf "| %s | %s | %d | %s | %s | %s | %s | %s |\n", kind, moved, n["iou"], mean("iou", 1), mean("oa", 1),
                        mean("loss", 3), mean("step", 1), mean("peak", 0)
                }' "kind=$kind" "moved=$moved" "$@"
        done
    done
}

tables() {
    found=no
    for place in $scenes; do
        [ -z "$(cases "$place" | head -c 1)" ] || { scaling_table "$place" && found=yes; }
    done
    for place in rooms data; do
        for test in "$out/runs/$place-"*/test.json; do
            [ -s "$test" ] && quality_table "$place" && found=yes && break
        done
    done
    [ $found = yes ] || die "there is nothing in $out"
}

case $command in
scaling) scaling ;;
quality) quality ;;
table) tables ;;
*) die 'scaling, quality or table?' ;;
esac
