# Tiles without labels: they change no loss and no metric of a split, whatever the batches, and a step of them says so.
. tests/cli/common.sh

# tile NAME POINTS LABEL: a cloud of points whose label is the awk expression LABEL of i.
tile() {
    awk -v n="$2" "BEGIN {
        printf \"ply\nformat ascii 1.0\nelement vertex %d\n\", n
        printf \"property float x\nproperty float y\nproperty float z\nproperty float f\nproperty int label\nend_header\n\"
        for (i = 0; i < n; i++) printf \"%.3f %.3f %.3f %.3f %d\n\", i % 7 / 5, i % 11 / 8, i % 5 / 9, i % 13 / 13, $3
    }" >"$work/$1.ply"
}
tile a 40 'i % 3'
tile b 90 'i % 2 ? 255 : 2'
tile none 60 '255'
cat >"$work/m.pnet" <<'END'
pnet 1
input cloud {
  xyz   : position
  f     : feature[1]
  label : class[3] per point
}
net n(p: cloud) { return p.f -> linear(8) -> relu -> linear(3) }
y = n(cloud)
loss   ce  = cross_entropy(y, cloud.label)
metric iou = iou(y, cloud.label)
END

# data NAME TRAIN VAL
data() {
    printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [p, q, r]\nignore: [255]\ntrain: [%s]\nval: [%s]\n' "$2" "$3" >"$work/$1.yaml"
}
data whole 'a.ply, none.ply' 'a.ply, b.ply'
data gaps 'none.ply, a.ply' 'a.ply, none.ply, b.ply, none.ply'
data one 'a.ply' 'a.ply'
data half 'a.ply' 'a.ply, none.ply'
data void 'none.ply' 'none.ply'
printf 'data: whole.yaml\nsteps: 4\n' >"$work/run.yaml"

run 0 train "$work/m.pnet" --config "$work/run.yaml" -o "$work/run" -j 1
prints "2 steps of them without anything that a loss counts"
check "a warning" test "$(grep -c 'nothing in its data counts for a loss' "$err")" = 1
steps=$work/run/metrics.jsonl
check "steps without labels" test "$(grep -c '"loss":null,"loss.ce":null,"gradient_norm":0,' "$steps")" = 2
check "steps with labels" test "$(grep -cE '"loss":[0-9.]+,"loss.ce":[0-9.]+,"gradient_norm":[0-9.]*[1-9]' "$steps")" = 2
valid_json "$steps"

# evaluate DATA BATCH_SIZE: the loss.
evaluate() {
    run 0 eval "$work/m.pnet" --weights "$work/run/last" --config "$work/run.yaml" --data "$work/$1.yaml" --set-config "batch_size=$2" --json -j 1
    cp "$out" "$work/eval.json"
    number ce "$work/eval.json"
}
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && b > 0 && a - b < 1e-6 * b && b - a < 1e-6 * b) }'; }
one=$(evaluate one 1) whole=$(evaluate whole 1) iou=$(number iou "$work/eval.json")
check "not the mean over clouds" test "$one" != "$whole"
for size in 1 2 3 4; do
    loss=$(evaluate whole $size)
    check "$loss, not $whole, in batches of $size" near "$loss" "$whole"
    loss=$(evaluate gaps $size)
    check "$loss, not $whole, with tiles without labels in batches of $size" near "$loss" "$whole"
    check "iou" test "$(number iou "$work/eval.json")" = "$iou"
    loss=$(evaluate half $size)
    check "$loss, not $one, with one tile of two labelled" near "$loss" "$one"
done

# Nothing is labelled.
evaluate void 1 >/dev/null
check "null" grep -q '"loss": *null, *"ce": *null' "$work/eval.json"
run 0 eval "$work/m.pnet" --weights "$work/run/last" --config "$work/run.yaml" --data "$work/void.yaml" -j 1
prints "ce           -"
run 0 train "$work/m.pnet" --config "$work/run.yaml" --data "$work/void.yaml" -o "$work/void" -j 1
says "nothing in the validation data counts for a loss, such as a labelled point; best/ is not replaced"
check "no best/" test ! -e "$work/void/best"
check "last/" test -e "$work/void/last"

# A step of two batches, one of them without labels: the loss of the other.
run 0 train "$work/m.pnet" --config "$work/run.yaml" -o "$work/twice" --steps 1 --set-config accumulate=2 -j 1
run 0 train "$work/m.pnet" --config "$work/run.yaml" --data "$work/one.yaml" -o "$work/alone" --steps 1 -j 1
check "one of two batches" near "$(number loss.ce "$work/twice/metrics.jsonl")" "$(number loss.ce "$work/alone/metrics.jsonl")"
finish
