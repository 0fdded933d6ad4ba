#!/usr/bin/env bash
# Times and peaks of losses between point sets over sizes, and how they grow.
#
#   bench/losses.sh run -o OUT [options]    times the cases that are missing; may be stopped at any time, and goes on where it was
#   bench/losses.sh table -o OUT            prints the tables of the cases that are there
#
# A case is a file OUT/LOSS-SET-BATCHxPOINTS.json. Options:
#   --losses 'chamfer dcd ..'    a device that has no kernels for a loss leaves it out; emd and sinkhorn stop at 16,384 points
#   --sets 'sphere collapsed'    --sizes '32x2048 1x16384 ..'    --most N: points of a sample
#   --device cpu|cuda            --repeat 11                     --seconds 60: no round begins later
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
bench=${PNET_BENCH:-$here/build/release/bench/pnet-bench}
out='' losses='chamfer dcd hypercd infocd apml emd sinkhorn' sets='sphere collapsed'
sizes='32x2048 1x16384 1x65536 1x262144 1x1000000' most=1000000 device=cpu repeat=11 seconds=60

die() {
    echo "losses.sh: $*" >&2
    exit 2
}

command=${1:-}
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
    case $1 in
    -o) [ $# -gt 1 ] || die '-o needs a folder' && out=$2 && shift ;;
    --losses | --sets | --sizes | --most | --device | --repeat | --seconds)
        [ $# -gt 1 ] || die "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift
        ;;
    *) die "no option $1" ;;
    esac
    shift
done
[ -n "$out" ] || die 'where to? -o OUT'

# Points of a sample that a loss is timed for: these two look at all pairs.
largest() {
    case $1 in
    emd | sinkhorn) echo $((most < 16384 ? most : 16384)) ;;
    *) echo "$most" ;;
    esac
}

# time_case LOSS SET SIZE: 0 done, 1 the device has no kernels for the loss, 2 it failed.
time_case() {
    local file=$out/$1-$2-$3.json code=2
    "$bench" loss "$1" --set "$2" --batch "${3%x*}" --points "${3#*x}" --device "$device" --repeat "$repeat" \
        --seconds "$seconds" --json >"$file.part" 2>"$file.log" && mv "$file.part" "$file" && rm "$file.log" && return 0
    cat "$file.log" >&2
    grep -q 'has no kernels' "$file.log" && code=1
    rm -f "$file.part" "$file.log"
    return $code
}

run_all() {
    local loss set size code
    mkdir -p "$out" || exit 1
    for loss in $losses; do
        for set in $sets; do
            for size in $sizes; do
                [ "${size#*x}" -le "$(largest "$loss")" ] && [ ! -s "$out/$loss-$set-$size.json" ] || continue
                time_case "$loss" "$set" "$size"
                code=$?
                [ $code = 1 ] && continue 3
                [ $code = 2 ] && return 1
                echo "$loss, $set, $size: done, $SECONDS s"
            done
        done
    done
}

# rows KEY SCALE GROWTH: a row for each loss and set, a column for each size; with GROWTH, the exponent of the growth with the
# points of one sample. KEY: time, or a number of the cases.
rows() {
    local loss set size file
    printf '| loss | sets |'
    for size in $sizes; do printf ' %s |' "$size"; done
    printf '%s\n|---|---|' "${3:+ exponent |}"
    for size in $sizes; do printf -- '---|'; done
    printf '%s\n' "${3:+---|}"
    for loss in $losses; do
        for set in $sets; do
            compgen -G "$out/$loss-$set-*.json" >/dev/null || continue
            printf '| `%s` | %s |' "$loss" "$set"
            for size in $sizes; do
                file=$out/$loss-$set-$size.json
                echo "$size $([ -s "$file" ] && cat "$file")"
            done | awk -v "key=$1" -v "scale=$2" -v "growth=${3:-}" '
                function number(text, key,    at, rest) {
                    at = index(text, "\"" key "\": ")
                    if (!at) return ""
                    rest = substr(text, at + length(key) + 4)
                    sub(/[,}].*/, "", rest)
                    return rest + 0
                }
                function shown(v) { return sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 0.1 ? "%.2f" : "%.3f", v) }
                {
                    size = $1
                    v = key == "time" ? number($0, "forward_ms") : number($0, key)
                    if (v == "") { printf " - |"; next }
                    if (key == "time") v += number($0, "backward_ms")
                    v *= scale
                    printf " %s |", shown(v)
                    split(size, n, "x")
                    if (n[1] != 1 || v <= 0) next
                    x = log(n[2]); y = log(v); count++
                    sx += x; sy += y; sxx += x * x; sxy += x * y
                }
                END {
                    if (growth == "") printf "\n"
                    else if (count > 1) printf " %.2f |\n", (count * sxy - sx * sy) / (count * sxx - sx * sx)
                    else print " - |"
                }'
        done
    done
}

tables() {
    compgen -G "$out/*.json" >/dev/null || die "there are no cases in $out"
    printf 'Forward and backward, ms:\n\n'
    rows time 1 growth
    printf '\nPeak, MiB:\n\n'
    rows peak_bytes 9.5367431640625e-07 growth
    cat "$out"/*.json | grep -q of_nanoflann || return 0
    printf '\nForward and backward, of the time of nanoflann:\n\n'
    rows of_nanoflann 1
}

case $command in
run) run_all ;;
table) tables ;;
*) die 'run or table?' ;;
esac
