#!/usr/bin/env bash
# What each loss makes of completion: trains networks on synthetic partial shapes with each loss, all else equal, evaluates them on
# shapes that were not trained on, and writes the table.
#
#   bench/completion.sh run -o OUT [options]    makes the shapes and trains and evaluates the runs that are missing; may be stopped
#                                               at any time, and goes on where it was
#   bench/completion.sh table -o OUT            prints the table of the finished runs
#
# Runs are folders OUT/runs/MODEL-WAY-sSEED. Options:
#   --models 'pcn foldingnet'     models/MODEL.pnet
#   --ways 'chamfer l1 ..'        the losses, as the models' param `way` names them
#   --seeds '1 2 3'               --steps 2000      --batch 32       --lr 0.001
#   --objects 4800                shapes, of which a tenth is for the test     --points 16384    of a full shape
#   --set 'coarse=256 count=4096'  params, of the models that have them
#   --clip 10                     limit of the gradient's norm (none)
#   --emd yes                     measures the earth mover's distance too: a network must write as many points as a full shape has
#   --device cpu|cuda             --precision fp32|bf16              --threads N    --workers N
#   --minutes N                   stops training after N minutes (exit code 1 if runs are missing)
#   --runs 'pcn-dcd-s1 ..'        these runs alone
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
pnetc=${PNETC:-$here/build/release/pnetc}
out='' models='pcn foldingnet' ways='chamfer l1 dcd dcd_5 hypercd infocd sinkhorn apml' seeds='1 2 3' steps=2000 batch=32 lr=0.001 objects=4800
points=16384 set='' clip='' emd=no device=cpu precision=fp32 threads=2 workers=2 minutes=0 runs=''

die() {
    echo "completion.sh: $*" >&2
    exit 2
}

command=${1:-}
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
    case $1 in
    -o) [ $# -gt 1 ] || die '-o needs a folder' && out=$2 && shift ;;
    --models | --ways | --seeds | --steps | --batch | --lr | --objects | --points | --set | --clip | --emd | --device | --precision | \
        --threads | --workers | --minutes | --runs)
        [ $# -gt 1 ] || die "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift
        ;;
    *) die "no option $1" ;;
    esac
    shift
done
[ -n "$out" ] || die 'where to? -o OUT'
case $emd in yes | no) ;; *) die '--emd is yes or no' ;; esac

# Replaces the file in one step, because runs may begin at the same time.
write_config() {
    cat >"$out/run.yaml.$$" <<END
data: shapes
steps: $steps
batch_size: $batch
optimizer: {name: adamw}
lr: $lr
schedule: {name: cosine}
eval_every: 0
save_every: {steps: 250}
workers: $workers
END
    [ -z "$clip" ] || echo "clip_grad: $clip" >>"$out/run.yaml.$$"
    mv "$out/run.yaml.$$" "$out/run.yaml"
}

seconds_left() {
    [ "$minutes" = 0 ] && { echo 1000000 && return; }
    awk -v "minutes=$minutes" -v "used=$SECONDS" 'BEGIN { print int(60 * minutes - used) }'
}

# set_options MODEL WAY: as pnetc takes them, of the params that the model has.
set_options() {
    local s
    options=(--set "way=\"$2\"")
    for s in $set; do
        ! grep -q "^param *${s%%=*} *=" "$here/models/$1.pnet" || options+=(--set "$s")
    done
}

# train MODEL WAY SEED FOLDER: 0 when it is finished, 1 when time is up, 2 when it failed.
train() {
    local left code
    [ -s "$4/train.json" ] && return 0
    left=$(seconds_left)
    [ "$left" -gt 0 ] || return 1
    set_options "$1" "$2"
    OMP_NUM_THREADS=$threads timeout --foreground -s INT "$left" "$pnetc" train "$here/models/$1.pnet" --config "$out/run.yaml" \
        -o "$4" --resume --without-optimizer "${options[@]}" --seed "$3" --device "$device" --precision "$precision" -q --json \
        >"$4/train.part" 2>"$4/train.log"
    code=$?
    [ $code = 130 ] || [ $code = 124 ] && return 1
    [ $code = 0 ] || { cat "$4/train.log" >&2 && return 2; }
    mv "$4/train.part" "$4/train.json"
}

evaluate() { # MODEL WAY FOLDER
    [ -s "$3/test.json" ] && { [ "$emd" = no ] || grep -q '"emd"' "$3/test.json"; } && return 0
    set_options "$1" "$2"
    options+=(--set "emd=$emd")
    OMP_NUM_THREADS=$threads "$pnetc" eval "$here/models/$1.pnet" --weights "$3/last" --config "$out/run.yaml" --split test \
        "${options[@]}" --device "$device" --precision "$precision" --json >"$3/test.part" 2>"$3/test.log" ||
        { cat "$3/test.log" >&2 && return 2; }
    mv "$3/test.part" "$3/test.json"
}

all_runs() {
    local seed model way
    for seed in $seeds; do for model in $models; do for way in $ways; do echo "$model-$way-s$seed"; done; done; done
}

run_all() {
    local name model way seed folder claim code
    mkdir -p "$out/runs" "$out/claims"
    exec {claim}>"$out/claim" # of those that begin at once, one makes the shapes
    flock "$claim"
    [ -s "$out/shapes/dataset.yaml" ] ||
        "$pnetc" data synth partial -o "$out/shapes" --count "$objects" --points "$points" --seed 7 -q || exit 1
    exec {claim}>&-
    write_config
    for name in ${runs:-$(all_runs)}; do
        IFS=- read -r model way seed <<<"$name"
        [ -s "$here/models/$model.pnet" ] || die "there is no models/$model.pnet"
        folder=$out/runs/$name
        mkdir -p "$folder"
        exec {claim}>"$out/claims/$name" # a run folder takes only what a run made
        flock -n "$claim" || { exec {claim}>&- && continue; } # another `run` is at it
        train "$model" "$way" "${seed#s}" "$folder"
        code=$?
        [ $code = 0 ] && { evaluate "$model" "$way" "$folder" || code=2; }
        exec {claim}>&-
        [ $code = 2 ] && return 2
        [ $code = 1 ] && { echo "time is up at $name" && return 1; }
        echo "$name: done, $SECONDS s"
    done
}

# A row for each model and loss: means over the seeds, and the standard deviation between them.
table() {
    echo '| model | loss | seeds | CD-L1 x 1000 | CD-L2 x 1000 | EMD x 1000 | F-score, % | covered, % | step, ms | training, MiB |'
    echo '|---|---|---|---|---|---|---|---|---|---|'
    local model way files f
    for model in $models; do
        for way in $ways; do
            files=()
            for seed in $seeds; do
                f=$out/runs/$model-$way-s$seed
                [ -s "$f/test.json" ] && files+=("$f/test.json" "$f/train.json" "$f/metrics.jsonl")
            done
            [ ${#files[@]} = 0 ] || awk -v "model=$model" -v "way=$way" '
                function has(text, key) { return index(text, "\"" key "\":") > 0 }
                function number(text, key,    at, rest) {
                    at = index(text, "\"" key "\":")
                    if (!at) return ""
                    rest = substr(text, at + length(key) + 3)
                    sub(/[,}].*/, "", rest)
                    return rest + 0
                }
                function add(key, v) { n[key]++; sum[key] += v; square[key] += v * v }
                function mean(key, digits,    m, s) {
                    if (!n[key]) return "-"
                    m = sum[key] / n[key]
                    s = n[key] > 1 ? sqrt(((square[key] - n[key] * m * m) > 0 ? square[key] - n[key] * m * m : 0) / (n[key] - 1)) : 0
                    return sprintf("%.*f ± %.*f", digits, m, digits, s)
                }
                FILENAME ~ /test\.json$/ {
                    add("l1", number($0, "shape")); add("l2", number($0, "cd_l2"))
                    if (has($0, "emd")) add("emd", number($0, "emd"))
                    add("f", 100 * number($0, "f_score")); add("covered", 100 * number($0, "covered"))
                    next
                }
                FILENAME ~ /train\.json$/ { if (/"peak_bytes"/) add("peak", number($0, "peak_bytes") / 1048576); next }
                # times of steps: the differences between those of a run; the first 20 steps are left out
                FNR == 1 { from = "" }
                FNR == 20 { from = number($0, "time_s") }
                FNR > 20 { last[FILENAME] = 1000 * (number($0, "time_s") - from) / (FNR - 20) }
                END {
                    for (f in last) add("step", last[f])
                    printf "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", model, way, n["l1"], mean("l1", 1),
                        mean("l2", 2), mean("emd", 1), mean("f", 1), mean("covered", 1), mean("step", 1), mean("peak", 0)
                }' "${files[@]}"
        done
    done
}

case $command in
run) run_all ;;
table) table ;;
*) die 'run or table?' ;;
esac
