# A training for completion: its best checkpoint is that of the least error.
. tests/cli/common.sh
mkdir "$work/set"
for i in 0 1 2 3 4 5; do
    awk -v seed=$i 'BEGIN { srand(seed + 1); for (i = 0; i < 300; i++) print rand() - 0.5, rand() - 0.5, 2 * rand() - 1 }' >"$work/set/f$i.txt"
    awk '$1 < 0' "$work/set/f$i.txt" >"$work/set/p$i.txt"
done
cat >"$work/set/dataset.yaml" <<END
pnet_dataset: 1
task: completion
train: [{partial: p*.txt, full: f*.txt, drop_every: 2}]
val: [{partial: p*.txt, full: f*.txt, keep_every: 2}]
END
cat >"$work/small.pnet" <<END
pnet 1
input partial { xyz : position }
input full { xyz : position }
net small(p: cloud) {
  C = points(sample, 40)
  return p.xyz -> linear(16) -> relu -> pool(max, to=sample) -> linear(120) -> split(to=C)
}
y = small(partial)
loss   cd    = chamfer(y, full.xyz)
metric shape = completion(y, full.xyz)
END
cat >"$work/run.yaml" <<END
data: set
steps: 12
batch_size: 2
lr: 0.05
eval_every: {steps: 1}
END
run 0 train "$work/small.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
grep -o '"val.shape":[0-9.e+-]*' "$work/run/metrics.jsonl" | cut -d : -f 2 | sort -g >"$work/values"
check "validations" test "$(wc -l <"$work/values")" = 12
check "that differ" test "$(head -n 1 "$work/values")" != "$(tail -n 1 "$work/values")"
best=$(number shape "$work/run/best/state.json")
check "the best of $(tr '\n' ' ' <"$work/values") is $best" awk -v a="$best" -v b="$(head -n 1 "$work/values")" 'BEGIN { exit !(a - b < 1e-6 * b && b - a < 1e-6 * b) }'
finish
