# bench/completion.sh: runs so small that nothing is learned. One is stopped and goes on where it was, those that are finished
# stay as they are, and the table has what was measured.
. tests/cli/common.sh
export PNETC=$pnetc
folder=$work/completion

# bench CODE ARGUMENTS...
bench() {
    local want=$1 got=0
    shift
    bash bench/completion.sh "$@" >"$out" 2>"$err" </dev/null || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "exit code $got instead of $want: $* $(tail -n 3 "$err")"; fi
}

completion() { # CODE OPTIONS...
    local want=$1
    shift
    bench "$want" run -o "$folder" --models foldingnet --ways 'chamfer apml' --seeds '1 2' --steps 2 --batch 2 \
        --objects 10 --points 64 --set 'coarse=16 fold=2 count=64' --workers 0 "$@"
}

# One training is stopped, then it ends two steps behind where it was.
stopped=$folder/runs/foldingnet-apml-s1
completion 1 --runs foldingnet-apml-s1 --steps 1000000 --minutes 0.1
prints "time is up at foldingnet-apml-s1"
check "nothing is measured" test ! -e "$stopped/train.json" -a ! -e "$stopped/test.json"
cp "$stopped/metrics.jsonl" "$work/before"
steps=$(wc -l <"$work/before")
check "$steps steps were made" test "$steps" -gt 0
completion 0 --runs foldingnet-apml-s1 --steps $((steps + 2))
prints "foldingnet-apml-s1: done"
check "$steps steps and two" test "$(wc -l <"$stopped/metrics.jsonl")" = $((steps + 2))
head -n "$steps" "$stopped/metrics.jsonl" >"$work/kept"
same "$work/kept" "$work/before"

# The others; what is finished is not trained or evaluated again.
for file in train.json test.json; do cp "$stopped/$file" "$work/$file"; done
completion 0
check "four runs" test "$(grep -c ': done, ' "$out")" = 4
completion 0 --models pcn --ways chamfer --seeds 1
check "each of a network, a loss and a seed" test "$(ls "$folder/runs" | tr '\n' ' ')" = "$(
    for run in foldingnet-{apml,chamfer}-s{1,2} pcn-chamfer-s1; do printf '%s ' $run; done)"
for file in train.json test.json; do same "$stopped/$file" "$work/$file"; done
for run in "$folder"/runs/*; do
    valid_json "$run/train.json"
    valid_json "$run/test.json"
    [ "$run" = "$stopped" ] || check "two steps of $run" test "$(wc -l <"$run/metrics.jsonl")" = 2
done
check "the loss of the run" grep -q 'way: .*apml' "$stopped/config.yaml"
differ "two seeds, one result" "$folder/runs/foldingnet-chamfer-s1/test.json" \
    "$folder/runs/foldingnet-chamfer-s2/test.json"

# The table: a row for each network and loss, with the mean over its seeds.
mean() { # KEY FACTOR DIGITS RUN: of both seeds
    for seed in 1 2; do number "$1" "$folder/runs/$4-s$seed/test.json"; done |
        awk -v "factor=$2" -v "digits=$3" '{ s += factor * $1 } END { printf "%.*f", digits, s / NR }'
}
completion 0 --emd yes
differ "no earth mover's distance" "$stopped/test.json" "$work/test.json"
same "$stopped/train.json" "$work/train.json"
bench 0 table -o "$folder"
check "a head and three rows" test "$(wc -l <"$out")" = 5
for loss in chamfer apml; do
    run=foldingnet-$loss
    want="^\| foldingnet \| $loss \| 2 \| $(mean shape 1 1 "$run") ± [0-9.]+ \| $(mean cd_l2 1 2 "$run") ± [0-9.]+ \| $(
        mean emd 1 1 "$run") ± [0-9.]+ \| $(mean f_score 100 1 "$run") ± [0-9.]+ \| $(mean covered 100 1 "$run") ± [0-9.]+ \|"
    check "the row of $run: $want" grep -qE "$want" "$out"
done
check "one seed, one kind of distance" grep -qE '^\| pcn \| chamfer \| 1 \| [0-9.]+ ± 0.0 \| [0-9.]+ ± 0.00 \| - \|' "$out"
bench 0 table -o "$folder" --models foldingnet --ways apml --seeds 2
check "one row" test "$(wc -l <"$out")" = 3

completion 2 --runs foldingnet-nothing-s1
says "way is chamfer, "
check "no result of what failed" test ! -e "$folder/runs/foldingnet-nothing-s1/train.json"
completion 2 --models peano
says "there is no models/peano.pnet"
bench 2 run
says "where to? -o OUT"
bench 2 run -o "$folder" --emd perhaps
says "--emd is yes or no"
bench 2 evaluate -o "$folder"
says "run or table?"
finish
