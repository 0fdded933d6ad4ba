# Completion from the command line: a data set described, trained on, resumed, evaluated; a net of one of two clouds, and of both,
# run by the names of its inputs.
. tests/cli/common.sh
mkdir "$work/set"
for i in 0 1 2 3 4 5; do
    awk -v seed=$i 'BEGIN { srand(seed + 1); for (i = 0; i < 300; i++) print rand() - 0.5, rand() - 0.5, rand() - 0.5 }' >"$work/set/f$i.txt"
    awk '$1 < 0' "$work/set/f$i.txt" >"$work/set/p$i.txt"
done
cat >"$work/set/dataset.yaml" <<END
pnet_dataset: 1
task: completion
classes: [box, ball]
train: [{partial: p*.txt, full: f*.txt, points: 128, full_points: 256, label: ball, drop_every: 3}]
val: [{partial: p*.txt, full: f*.txt, label: box, keep_every: 3}]
END
run 0 data info "$work/set" --radius 1mm
prints "completion, 2 classes, near means within 0.001 m"
prints "train         4 pairs"
check "points of the partial" grep -qE 'points of the partial +128 +128 +128$' "$out"
check "points of the full" grep -qE 'points of the full +256 +256 +256$' "$out"
check "all of the partial" grep -qE 'partial near the full +100 +100 +100  %$' "$out"
check "classes" grep -qE '^ +4  100.0%  ball$' "$out"

cat >"$work/tiny.pnet" <<END
pnet 1
input partial { xyz : position
  at : feature[3] }
input full { xyz : position
  at : feature[3]
  kind : class[2] per cloud }
net small(p: cloud, q: cloud) {
  a = p.at -> linear(8) -> bn -> relu -> pool(max, to=sample) -> linear(3)
  b = q.at -> linear(8) -> bn -> relu -> pool(max, to=sample) -> linear(3)
  both = a + b
  return [a, both]
}
y = small(partial, full)
loss   l = mse(y[0], full.at -> pool(mean, to=sample))
loss   m = mse(y[1], full.at -> pool(max, to=sample))
END
cat >"$work/run.yaml" <<END
data: set
steps: 6
batch_size: 2
inputs: {partial: {at: [x, y, z]}, full: {at: [x, y, z]}}
augment: {flip: [x, z], rotate: z, scale: [0.9, 1.1]}
save_every: {steps: 3}
eval_every: {steps: 3}
END
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/whole" -q -j 1
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/parts" -q -j 1 --steps 3
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/parts" -q -j 1 --resume
check "weights" test -s "$work/whole/last/weights.safetensors"
same "$work/whole/last/weights.safetensors" "$work/parts/last/weights.safetensors"
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/more" -q -j 1 --set-config workers=3
same "$work/whole/last/weights.safetensors" "$work/more/last/weights.safetensors"
run 0 eval "$work/tiny.pnet" --config "$work/run.yaml" --weights "$work/whole" --json
valid_json "$out"
check "the loss falls" awk -v l="$(number l "$out")" 'BEGIN { exit !(l > 0 && l < 1) }'

# The first result needs the partial cloud alone, the second both.
infer() { # exit code, options
    local want=$1
    shift
    run "$want" infer "$work/tiny.pnet" --weights "$work/whole" --json "$@"
}
first=small.a.linear_2 second=small.b.linear value=small.both
infer 0 --value "$first" --input "$work/set/p0.txt"
cp "$out" "$work/plain.json"
infer 0 --value "$first" --input "partial=$work/set/p0.txt"
same "$work/plain.json" "$out"
infer 0 --value "$first" --input "partial=$work/set/p*.txt" -o "$work/many"
check "a file a cloud" test -s "$work/many/p5.npy"
infer 0 --value "$second" --input "full=$work/set/f0.txt" -o "$work/second.npy"
check "a row a point of the full cloud" test "$(npy_shape "$work/second.npy")" = "300 8"
infer 0 --value "$value" --input "full=$work/set/f0.txt" --input "partial=$work/set/p0.txt"
cp "$out" "$work/both.json"
infer 0 --value "$value" --input "partial=$work/set/p0.txt" --input "full=$work/set/f0.txt"
differ "the sum is another value" "$work/plain.json" "$work/both.json"
sed "s/f0.txt/p0.txt/" "$work/both.json" >"$work/renamed.json"
check "the order of the options does not count" cmp "$work/renamed.json" "$out"
infer 0 --value "$value" --input "$work/set/p0.txt" --input "full=$work/set/f0.txt"
same "$work/renamed.json" "$out"
infer 0 --value "$value" --input "partial=$work/set/p0.txt" --input "$work/set/f0.txt"
same "$work/renamed.json" "$out"
infer 2 --value "$value" --input "$work/set/p0.txt" --input "$work/set/f0.txt"
says 'say which one it is, --input NAME=CLOUD'
infer 2 --value "$value" --input "partial=$work/set/p0.txt" --input "full=$work/set/f0.txt" --input "$work/set/p1.txt"
says 'the clouds `partial`, `full` have names already: leave it out'
infer 2 --value "$value" --input "$work/set/p0.txt"
says 'the result reads the clouds `partial`, `full`: give the others too, --input NAME=CLOUD'
infer 2 --value "$value" --input "partial=$work/set/p0.txt"
says 'the result reads the clouds `partial`, `full`: --input full=CLOUD is missing'
infer 2 --value "$value" --input "partial=$work/set/p0.txt" --input "partial=$work/set/p1.txt"
says '`partial` has a cloud already'
infer 2 --value "$value" --input "partial=$work/set/p*.txt" --input "full=$work/set/f0.txt"
says 'with several inputs each takes one cloud'
infer 1 --value "$value" --input "partial=$work/set/none.txt" --input "full=$work/set/f0.txt"
says 'none.txt'
infer 2 --value "$first" --input "full=$work/set/f0.txt"
says 'the result does not read `full`; leave it out'
infer 2 --value "$first" --input "fulll=$work/set/f0.txt"
says 'the model has no cloud `fulll`; it has `partial`, `full`'
# A synthetic set: the same bytes on any number of threads, guarded as the others are.
run 0 data synth partial -o "$work/objects" --count 12 --points 600 --seed 3 -j 1
prints "dataset.yaml: 12 pairs of partial and full clouds"
run 0 data synth partial -o "$work/again" --count 12 --points 600 --seed 3 -j 3 -q
check "the same bytes" diff -r "$work/objects" "$work/again"
run 0 data synth partial -o "$work/other" --count 12 --points 600 --seed 4 -q
differ "another seed" "$work/objects/train/000000_partial.ply" "$work/other/train/000000_partial.ply"
check "full clouds" test "$(ply_rows "$work/objects/test/000009_full.ply")" = 600
check "entries" grep -qE '^  - \{partial: train/000000_partial.ply, full: train/000000_full.ply, label: [a-z]+, points: 2048\}$' "$work/objects/dataset.yaml"
run 2 data synth partial -o "$work/again" --count 2 --points 600
says "holds a data set already: --force replaces it"
check "the refused set" diff -r "$work/objects" "$work/again"
run 0 data synth partial -o "$work/again" --count 1 --points 600 --force -q
check "only the new set" test "$(cd "$work/again" && find . -type f | sort | tr '\n' ' ')" = './dataset.yaml ./train/000000_full.ply ./train/000000_partial.ply '
run 2 data synth partial -o "$work/none" --scene room
says "--scene is for pairs"
run 2 data synth partials -o "$work/none"
says "did you mean partial?"
run 0 data info "$work/objects" --radius 10cm
prints "completion, 12 classes"
check "centred and scaled" grep -qE 'farthest of the full +1 +1 +1  m from the origin$' "$out"
sed -e "s|^data: .*|data: objects|" -e '/^augment/d' "$work/run.yaml" >"$work/objects.yaml"
sed 's/class\[2\]/class[12]/' "$work/tiny.pnet" >"$work/twelve.pnet"
run 0 train "$work/twelve.pnet" --config "$work/objects.yaml" -o "$work/trained" -q -j 1

# Meshes: the same weights for any number of workers, and for a run that is resumed.
mkdir "$work/meshes"
printf 'OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n' >"$work/meshes/a.off"
printf 'v 0 0 0\nv 3 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n' >"$work/meshes/b.obj"
cat >"$work/meshes/dataset.yaml" <<END
pnet_dataset: 1
task: completion
classes: [box, ball]
train:
  - {mesh: a.off, points: 500, views: {count: 2, points: 100}, label: box}
  - {mesh: b.obj, points: 500, views: {count: 2, points: 100, kind: cut}, label: ball}
val: [{mesh: a.off, points: 500, views: {count: 8, points: 100, kind: cut, part: 50%}, label: box}]
END
run 0 data info "$work/meshes"
prints "val           8 pairs"
check "points of the views" grep -qE 'points of the partial +100 +100 +100$' "$out"
sed "s|^data: .*|data: meshes|" "$work/run.yaml" >"$work/meshes.yaml"
run 0 train "$work/tiny.pnet" --config "$work/meshes.yaml" -o "$work/m1" -q -j 1
run 0 train "$work/tiny.pnet" --config "$work/meshes.yaml" -o "$work/m2" -q -j 1 --set-config workers=3 --set-config cache=0
same "$work/m1/last/weights.safetensors" "$work/m2/last/weights.safetensors"
run 0 train "$work/tiny.pnet" --config "$work/meshes.yaml" -o "$work/m3" -q -j 1 --steps 3
run 0 train "$work/tiny.pnet" --config "$work/meshes.yaml" -o "$work/m3" -q -j 1 --resume
same "$work/m1/last/weights.safetensors" "$work/m3/last/weights.safetensors"
# From full clouds alone, which are cut.
cat >"$work/set/cuts.yaml" <<END
pnet_dataset: 1
task: completion
classes: [box, ball]
train: [{full: f*.txt, views: {kind: cut, count: 2, points: 60}, label: ball, drop_every: 3}]
val: [{full: f*.txt, full_points: 200, views: {kind: cut, count: 8, part: 50%, points: 100}, label: box, keep_every: 3}]
END
run 0 data info "$work/set/cuts.yaml" --radius 1mm
prints "train         8 pairs"
prints "val          16 pairs"
check "points of the cuts" grep -qE 'points of the partial +60 +60 +60$' "$out"
check "points that are drawn" grep -qE 'points of the full +200 +200 +200$' "$out"
check "half of them" grep -qE 'full near the partial +50 +50 +50  %$' "$out"
check "a size of 1" grep -qE 'farthest of the full +1 +1 +1  m' "$out"
for run in c1:1 c2:3; do
    run 0 train "$work/tiny.pnet" --config "$work/run.yaml" --data "$work/set/cuts.yaml" -o "$work/${run%:*}" -q -j 1 --set-config "workers=${run#*:}"
done
same "$work/c1/last/weights.safetensors" "$work/c2/last/weights.safetensors"
sed -i 's/kind: cut/kind: depth/' "$work/set/cuts.yaml"
run 4 data info "$work/set/cuts.yaml"
says "cuts.yaml:4: kind: depth is for \`mesh\`: a camera sees surfaces, and a cloud has none; use \`kind: cut\`"
sed -i 's/3 1 2 3/3 1 2 4/' "$work/meshes/a.off"
run 4 data info "$work/meshes"
says 'a.off:10: a face names the vertex "4", but the 4 vertices count from 0'
finish
