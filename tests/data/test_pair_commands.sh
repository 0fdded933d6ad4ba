# Pairs from the command line: made, described, trained on with a model of pairs, and what is refused.
. tests/cli/common.sh
pairs=$work/pairs
run 0 data synth pairs -o "$pairs" --count 10 --points 2000 --seed 3 -j 1
prints "dataset.yaml: 10 pairs"
run 0 data synth pairs -o "$work/again" --count 10 --points 2000 --seed 3 -q
check "the same bits" diff -r "$pairs" "$work/again"
run 2 data synth rooms -o "$work/again" --count 1 --points 500
says "holds a data set already: --force replaces it"
check "the refused set" diff -r "$pairs" "$work/again"
run 0 data synth rooms -o "$work/again" --count 1 --points 500 --force -q
check "only the new set" test "$(cd "$work/again" && find . -type f | sort | tr '\n' ' ')" = './dataset.yaml ./train/000000.ply '
run 0 data synth pairs -o "$work/drives" --count 3 --scene street --beams 8 -q
check "clouds of a street" test -s "$work/drives/test/000002_target.ply"
run 0 data info "$pairs" --radius 30cm
prints "registration, overlap within 0.3 m"
prints "train         8 pairs"
prints "overlap under the pose"

# A cloud and itself, 1 m away: everything meets under the pose, and nothing without it.
mkdir "$work/own"
awk 'BEGIN { for (i = 0; i < 100; i++) print i % 10 * 0.1, int(i / 10) * 0.1, 0 }' >"$work/own/a.txt"
awk 'BEGIN { for (i = 0; i < 100; i++) print i % 10 * 0.1 + 3, int(i / 10) * 0.1, 4 }' >"$work/own/b.txt"
cat >"$work/own/dataset.yaml" <<END
pnet_dataset: 1
task: registration
val: [{source: a.txt, target: b.txt, pose: [1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1, 4]}]
END
run 0 data info "$work/own" --radius 1mm
check "overlap" grep -qE 'overlap under the pose +100 +100 +100  %$' "$out"
check "no overlap" grep -qE 'overlap without it +0 +0 +0  %$' "$out"
check "shift" grep -qE 'shift +5 +5 +5  m$' "$out"
check "points" grep -qE 'points a cloud +100 +100 +100$' "$out"

# The same geometry for a run that is resumed as for one that is not.
cat >"$work/run.yaml" <<END
data: pairs
steps: 4
batch_size: 2
lr: 0.01
save_every: {steps: 2}
eval_every: 0
augment: {rotate: xyz, flip: [x], scale: [0.8, 1.2], jitter: 5mm}
END
cat >"$work/tiny.pnet" <<END
pnet 1
param v = 20cm
input src { xyz : position }
input dst { xyz : position }
input T   : pose
net small(p: cloud) {
  g = grid(p, v * [1, 2])
  x = ones(g[0]) -> conv(8, kernel=3) -> bn -> relu
  y = x -> conv(8, kernel=3, to=g[1]) -> bn -> relu -> conv(8, kernel=3, to=g[0]) -> bn -> relu
  return cat(x, y) -> linear(8) -> l2norm
}
fs = small(src)
fd = small(dst)
M  = matches(level(fs), level(fd), T, radius=1.5*v)
loss hc = hardest_contrastive(fs, fd, M, pos=0.1, neg=1.4)
END
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/whole" -q -j 1
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/parts" -q -j 1 --steps 2
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/parts" -q -j 1 --resume
check "weights of 4 steps" test -s "$work/whole/last/weights.safetensors"
same "$work/whole/last/weights.safetensors" "$work/parts/last/weights.safetensors"

# What does not fit together.
run 2 data synth pairs -o "$work/none" --scene city
says "--scene is room or street, not 'city'"
run 2 data synth rooms -o "$work/none" --scene room
says "--scene is for pairs"
run 2 data info "$pairs" --radius 5parsec
says "--radius takes a length"
run 2 train tests/cli/tiny.pnet --config "$work/run.yaml" -o "$work/none" -q
says "task of"
sed 's/jitter: 5mm/elastic: {granularity: 1m, magnitude: 1m}/' "$work/run.yaml" >"$work/bent.yaml"
run 2 train "$work/tiny.pnet" --config "$work/bent.yaml" -o "$work/none" -q
says "elastic bends clouds"
sed -i 's/0, 0, 1, 4]/0, 0, 2, 4]/' "$work/own/dataset.yaml"
run 4 data info "$work/own"
says "dataset.yaml:3: pose: the 3x3 part is no rotation"
finish
