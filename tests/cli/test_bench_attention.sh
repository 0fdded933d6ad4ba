# bench/attention.sh: both runs on sizes so small that nothing is learned; they go on where they were, and the tables have what
# was measured.
. tests/cli/common.sh
export PNETC=$pnetc
bench=$(dirname "$pnetc")/bench/pnet-bench
folder=$work/attention

# attention CODE ARGUMENTS...
attention() {
    local want=$1 got=0
    shift
    sh bench/attention.sh "$@" >"$out" 2>"$err" </dev/null || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "exit code $got instead of $want: $* $(tail -n 3 "$err")"; fi
}

scaling() { # CODE
    attention "$1" scaling -o "$folder" --points '300 600' --scenes "${2:-rooms}" --nets 'flash3d flash3d_z' --runs 3 \
        --check 200 --set c=16
}
scaling 0
for file in flash3d-300 flash3d-600 flash3d_z-300 flash3d_z-600; do valid_json "$folder/scaling/rooms-$file.json"; done
# As many rows on the finest level as points; an order takes time, z takes none.
json=$folder/scaling/rooms-flash3d-600.json
check "attention on 600 rows" grep -qE '"op": ?"attend", ?"rows": ?600,' "$json"
# Both are medians of two short runs at different times: anything that delays one of them may make it the longer one.
check "orders are part of the geometry" awk -v o="$(number orders_ms "$json")" -v g="$(number geometry_ms "$json")" \
    'BEGIN { exit !(o > 0 && o < 50 * g) }'
check "z is free" test "$(number orders_ms "$folder/scaling/rooms-flash3d_z-600.json")" = 0
# What is there stays, what is missing is made.
cp "$json" "$work/before"
rm "$folder/scaling/rooms-flash3d_z-300.json"
scaling 0
same "$json" "$work/before"
check "the missing case" test -s "$folder/scaling/rooms-flash3d_z-300.json"
attention 0 table "$folder" --points '300 600'
prints "### rooms"
check "a row for each case" test "$(grep -cE '^\| flash3d(_z)? \| (300|600) \|' "$out")" = 4
for key in inference_ms geometry_ms step_with_geometry_ms orders_ms; do
    check "$key is in the case" test "$(number $key "$json")" != ''
done
# inference of the table = forward + geometry of the case
check "times of the table" awk -F'|' -v f="$(number inference_ms "$json")" -v g="$(number geometry_ms "$json")" \
    '$2 == " flash3d " && $3 == 600 { d = $4 / (f + g) - 1; exit !(d < 0.06 && d > -0.06) }' "$out"
for chart in scaling-rooms.svg scaling-rooms-memory.svg; do
    check "$chart" grep -q 'flash3d_z, training' "$folder/$chart"
    check "$chart has lines" test "$(grep -cE '<(path|polyline)' "$folder/$chart")" -ge 4
done
attention 1 scaling -o "$folder" --points 300 --scenes streets --nets flash3d --runs 2 --check 200 --set c=15
check "no case of what failed" test ! -e "$folder/scaling/streets-flash3d-300.json"
scaling 2 seas
says "no scene seas"

quality() { # CODE OPTIONS...
    local code=$1
    shift
    attention "$code" quality -o "$folder" --steps 2 --batch 2 --clouds 10 --cloud-points 500 --set 'c=16 v=20cm' \
        --orders 'z hashes' --seeds '1 2' "$@"
}
quality 0
check "eight runs" test "$(ls "$folder/runs" | wc -l)" = 8
quality 0
check "nothing is trained again" test "$(grep -c 'done$' "$out")" = 8
# A data set that is given, one list of orders alone; the params reach the training.
quality 0 --data "$folder/rooms" --orders curves --shifts no --seeds 1
check "orders of the run" grep -qF 'hilbert_trans' "$folder/runs/data-curves-no-s1/config.yaml"
attention 0 table "$folder"
prints "### Orders, rooms"
prints "### Orders, data"
check "rows of two seeds" test "$(grep -cE '^\| (z|hashes) \| (yes|no) \| 2 \| [0-9.]+ ± [0-9.]+ \|' "$out")" = 4
check "a row of one seed" test "$(grep -cE '^\| curves \| no \| 1 \| [0-9.]+ ± 0.0 \|' "$out")" = 1
iou=$(for seed in 1 2; do number iou "$folder/runs/rooms-z-yes-s$seed/test.json"; done |
    awk '{ s += 100 * $1 } END { printf "%.1f", s / NR }')
check "the mean of two seeds, $iou" grep -qF "| z | yes | 2 | $iou ± " "$out"
attention 2 quality -o "$folder" --orders peano --seeds 1
says "no orders peano"
attention 2 table "$work/none"
says "there is nothing in"
attention 2 scaling
says "where to? -o OUT"

printf '100 2.5 a line\n200 0 b\n' >"$work/numbers"
got=0
"$bench" chart <"$work/numbers" >"$out" 2>"$err" || got=$?
check "numbers above 0" test $got = 2
says "X Y NAME"
finish
