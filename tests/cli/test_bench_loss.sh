# pnet-bench loss: a loss between two point sets; bench/losses.sh: tables of them.
. tests/cli/common.sh
pnetc=$(dirname "$pnetc")/bench/pnet-bench

for set in cube sphere collapsed; do
    run 0 loss apml --points 200 --batch 3 --set $set --repeat 2 --json
    valid_json "$out"
    prints "\"set\": \"$set\""
    check "a value" grep -qE '"value": [0-9.]*[1-9]' "$out"
    check "a peak" grep -qE '"peak_bytes": [1-9]' "$out"
done
value() { sed -n 's/.*"value": \([^,]*\),.*/\1/p' "$out"; }
run 0 loss apml --points 200 --json --repeat 1
first=$(value)
run 0 loss apml --points 200 --json --repeat 3
check "the same points each time" test "$first" = "$(value)"
run 0 loss apml --points 200 --json --repeat 1 --noise 0.1
check "the noise counts" test "$first" != "$(value)"
run 0 loss apml --points 200 --json --repeat 1 --with rounds=1,most=3
check "arguments count" test "$first" != "$(value)"
run 0 loss apml --points 100
prints "backward"
run 0 loss apml --points 200 --json --repeat 1 --with rounds=1
check "the defaults cut nothing" grep -q '"cut": 0}' "$out"
run 0 loss apml --points 200 --json --repeat 1 --with 'rounds=1, most=3, tau=1e-8'
check "some have more than three" grep -qE '"cut": 0\.[0-9]*[1-9]' "$out"
check "as many points as before they are cut" grep -qE '"support": [3-9]\.' "$out"
run 0 loss apml --points 200 --repeat 1 --with entries=2,rounds=1
check "the room cuts too" grep -qE 'cut: 0\.[0-9]*[1-9]' "$out"
run 0 loss chamfer --points 200 --json --repeat 1
check "other losses have no supports" test "$(grep -c cut "$out")" = 0
run 3 loss apml --with most=1
says "most"
run 3 loss nothing
says "nothing"
run 2 loss
says "one NAME is needed"
run 2 loss apml --set plane
says "cube, sphere or collapsed"
run 2 loss apml --device tpu
says "tpu"
run 0 loss apml --points 200 --json --repeat 5 --seconds 0
check "no round begins after the first one" grep -q '"rounds": 1,' "$out"

# losses CODE ARGUMENTS...: the script of tables must end with that exit code.
losses() {
    local want=$1 got=0
    shift
    PNET_BENCH=$pnetc bash bench/losses.sh "$@" >"$out" 2>"$err" || got=$?
    check "exit code $got instead of $want: losses.sh $*" test "$got" = "$want"
}
small="2x64 1x100 1x400"
losses 0 run -o "$work/losses" --losses 'chamfer emd' --sizes "$small 1x20000" --sets sphere --repeat 1
check "six cases, and a seventh that is not for emd" test "$(find "$work/losses" -name '*.json' | wc -l)" = 7
check "emd stops at 16,384 points" test ! -e "$work/losses/emd-sphere-1x20000.json"
losses 0 run -o "$work/losses" --losses 'chamfer emd' --sizes "$small 1x20000" --sets sphere --repeat 1
check "nothing is timed again" test ! -s "$out"
losses 0 table -o "$work/losses" --sizes "$small"
check "a row for each loss in each table" test "$(grep -c '^| `\(chamfer\|emd\)`' "$out")" -ge 4
losses 1 run -o "$work/losses" --losses nothing --sizes 1x100
says "nothing"
losses 2 table -o "$work/none"
says "there are no cases"
# times that grow as the power 1.5 of the points, peaks as the points
mkdir "$work/made"
for n in 10000 40000 160000; do
    awk -v "n=$n" 'BEGIN { printf "{\"forward_ms\": %.6f, \"backward_ms\": %.6f, \"peak_bytes\": %.0f, \"of_nanoflann\": 2}\n",
        0.75e-4 * n ^ 1.5, 0.25e-4 * n ^ 1.5, 1048576 * n }' >"$work/made/apml-cube-1x$n.json"
done
losses 0 table -o "$work/made" --losses apml --sets cube --sizes '4x10000 1x10000 1x40000 1x160000'
prints '| `apml` | cube | - | 100 | 800 | 6400 | 1.50 |'
prints '| `apml` | cube | - | 10000 | 40000 | 160000 | 1.00 |'
prints '| `apml` | cube | - | 2.00 | 2.00 | 2.00 |'
finish
