# pnet-bench loss: a loss between two point sets.
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
run 3 loss apml --with most=1
says "most"
run 3 loss nothing
says "nothing"
run 2 loss
says "one NAME is needed"
run 2 loss apml --set plane
says "cube, sphere or collapsed"
finish
