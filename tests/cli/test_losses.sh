# Trainings with each loss on synthetic rooms: the loss falls, and what it is for gets as good as with cross entropy.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 10 --points 1500 --seed 3 -j 1
printf 'data: rooms\nsteps: 120\nbatch_size: 2\nlr: 0.01\neval_every: {steps: 120}\n' >"$work/run.yaml"

# mean_loss FILE SELECT: of ten steps, the first or last ones.
mean_loss() {
    grep -oE '"loss":[0-9.eE+-]+' "$1" | sed 's/.*://' | $2 | awk '{ s += $1 } END { print s / NR }'
}

# less A B FACTOR: A < B * FACTOR.
less() { awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b * f) }'; }

# trains NAME FACTOR: the loss falls below FACTOR times what it was.
trains() {
    run 0 train "$work/$1.pnet" --config "$work/run.yaml" -o "$work/$1" -q -j 1
    local first last
    first=$(mean_loss "$work/$1/metrics.jsonl" "head -n 10") last=$(mean_loss "$work/$1/metrics.jsonl" "tail -n 10")
    check "$1 goes from $first to $last" less "$last" "$first" "$2"
}

segments() { # NAME LOSS FACTOR
    sed "s/cross_entropy(y, cloud.label)/$2/" tests/cli/tiny.pnet >"$work/$1.pnet"
    cat >>"$work/$1.pnet" <<'END'
metric cm  = confusion(y, cloud.label)
metric pr  = precision(y, cloud.label)
metric re  = recall(y, cloud.label)
metric f   = f1(y, cloud.label)
metric one = top_k_accuracy(y, cloud.label, k=1)
metric two = top_k_accuracy(y, cloud.label, k=2)
END
    trains "$1" "$3"
    run 0 eval "$work/$1.pnet" --weights "$work/$1/last" --config "$work/run.yaml" --json
    valid_json "$out"
    cp "$out" "$work/$1.json"
}
segments entropy 'cross_entropy(y, cloud.label)' 0.6
iou=$(number iou "$work/entropy.json") oa=$(number oa "$work/entropy.json")
check "iou $iou, accuracy $oa with cross entropy" less 0.6 "$oa" 1
for loss in 'focal focal(y,cloud.label)' 'dice dice(y,cloud.label)' 'plain dice(y,cloud.label,square=no)'; do
    set -- $loss
    segments "$1" "$2" 0.6
    check "iou of $1: $(number iou "$work/$1.json"), not $iou" less "$iou" "$(number iou "$work/$1.json")" 1.25
    check "accuracy of $1: $(number oa "$work/$1.json"), not $oa" less "$oa" "$(number oa "$work/$1.json")" 1.25
done

# What metrics of the same matrix say of each other.
json=$work/focal.json
check "headline of confusion" test "$(number cm "$json")" = "$(number oa "$json")"
check "the best of one" test "$(number one "$json")" = "$(number oa "$json")"
check "the best two" less "$(number one "$json")" "$(number two "$json")" 1
matrix=$(tr -d ' \n' <"$json" | grep -oE '"cm.matrix":\[\[[][0-9,]*\]\]')
rows=$(echo "$matrix" | grep -o '\[[0-9,]*\]' | wc -l)
check "$rows rows of the matrix" test "$rows" = 12
total=$(echo "$matrix" | grep -oE '[0-9]+' | awk '{ n++; s += $1 } END { print n, s }')
check "$total in the matrix" test "$total" = "144 $(number points "$json")"
run 0 eval "$work/focal.pnet" --weights "$work/focal/last" --config "$work/run.yaml"
prints "kappa"
prints "label \\ prediction      0    1"
check "a line a label" test "$(sed -n '/label \\ prediction/,$p' "$out" | grep -cE '^ +[0-9]+ [a-z]+ +([0-9]+ *){12}$')" = 12
printed=$(sed -n '/label \\ prediction/,$p' "$out" | grep -E '^ +[0-9]+ [a-z]+ +([0-9]+ *){12}$' | awk '{ for (i = 3; i <= NF; i++) s += $i } END { print s }')
check "$printed printed" test "$printed" = "$(number points "$json")"

# Colours from coarser ones.
for loss in 'squares mse(y,cloud.rgb)' 'sizes l1(y,cloud.rgb)' 'both huber(y,cloud.rgb,delta=0.1)'; do
    set -- $loss
    cat >"$work/$1.pnet" <<END
pnet 1
input cloud {
  xyz : position
  rgb : feature[3]
}
net colours(p: cloud) {
  a = p.rgb -> pool(mean, to=grid(p, 20cm)) -> conv(16, kernel=3) -> bn -> relu
  return a -> upsample(to=level(p.rgb)) -> linear(3)
}
y = colours(cloud)
loss l = $2
END
    trains "$1" 0.4
done
finish
