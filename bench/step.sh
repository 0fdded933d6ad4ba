#!/bin/sh
# Times a training step of a small model on the CPU, from two builds: sh bench/step.sh OLD_BUILD NEW_BUILD [MODEL ...]
# (tests/cli/tiny.pnet). The builds take turns, five times, now one first and now the other; each time is the median of 101
# steps of `pnet-bench net`. Prints the median and the range of the five in milliseconds, and the ratios of the medians and of
# the least; of the whole run of the program, checks included, the processor's time. A small model on few points shows what a
# step costs besides its kernels, and stays in the caches, so that its times are steady on a busy machine too. POINTS=N sets how
# many (300), RUNS=N how often, OMP_NUM_THREADS=N the threads (1: on a busy machine several wait for each other).
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2")
shift 2
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests/cli/tiny.pnet
for build in "$old" "$new"; do
    grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt" ||
        { echo "$build is no release build" >&2; exit 2; }
done
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OMP_WAIT_POLICY=passive
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$new/pnetc" data synth rooms -o "$work/rooms" --count 1 --points 20000 --seed 3 -q
stages='geometry forward backward optimizer step_with_geometry'

figures() { # build, model: a line of the stages, and the processor's time of the whole run, checks included
    cpu=$( ("$1/bench/pnet-bench" net "$2" --scene "$work/rooms/train/000000.ply" --most "${POINTS:-300}" \
        --check-points 200 --repeat 101 --json >"$work/json" && times) |
        sed -n '2s/^\([0-9]*\)m\([0-9.]*\)s.*/\1 \2/p' | awk '{ print 1000 * (60 * $1 + $2) }')
    [ "$cpu" ] || exit 1
    for stage in $stages; do
        grep -oE "\"${stage}_ms\": *[0-9.e+-]+" "$work/json" | head -n 1 | sed 's/.*: *//' | tr '\n' ' '
    done
    echo "$cpu"
}

median() { # file, column: median, least and most
    cut -d ' ' -f "$2" "$1" | sort -g | awk '{ t[NR] = $1 }
        END { m = NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2; print m, t[1], t[NR] }'
}

for model in "$@"; do
    : >"$work/old"
    : >"$work/new"
    run=0
    while [ $run -lt "${RUNS:-5}" ]; do
        run=$((run + 1))
        [ $((run % 2)) = 0 ] || figures "$old" "$model" >>"$work/old"
        figures "$new" "$model" >>"$work/new"
        [ $((run % 2)) = 1 ] || figures "$old" "$model" >>"$work/old"
    done
    printf '%s, %s points, %s threads, %s runs\n' "$model" "${POINTS:-300}" "$OMP_NUM_THREADS" "$run"
    column=0
    for stage in $stages cpu_time_of_run; do
        column=$((column + 1))
        echo "$stage $(median "$work/old" $column) $(median "$work/new" $column)"
    done | awk 'BEGIN { printf "%-20s %-26s %-26s %s\n", "milliseconds", "old", "new", "new / old, least" }
        { printf "%-20s %7.3f (%7.3f - %7.3f) %7.3f (%7.3f - %7.3f)   %.3f      %.3f\n", $1, $2, $3, $4, $5, $6, $7,
            $5 / $2, $6 / $3 }'
done
