# infer --votes and eval --votes: the same figures by two ways, tiles under votes, and what is refused.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 1500 --seed 2 -j 1
printf 'data: rooms\nsteps: 20\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
cloud=$work/rooms/test/000009.ply
infer() { run 0 infer $model --weights "$work/run" --input "$cloud" -q "$@"; }

# The share of labels that are predicted, counted from the written classes, is what eval prints: the split has this one cloud.
infer --votes 3 -o "$work/three.csv"
run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --split test --votes 3 --json -q
share=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { all++; hits += $at["class"] == $at["label"] }
    END { printf "%.12f", hits / all }' "$work/three.csv")
voted=$(sed 's/.*"votes"//' "$out" | grep -o '"oa":[0-9.]*' | cut -d: -f2)
plain=$(sed 's/"votes".*//' "$out" | grep -o '"oa":[0-9.]*' | cut -d: -f2)
check "eval --votes counts $voted, the file has $share" awk -v a="$share" -v b="$voted" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-20) }'
check "votes change the figure $plain" test "$voted" != "$plain"
run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --split test --votes 3
prints 'by votes:'
check "both figures" test "$(grep -c '^iou ' "$out")" = 2
check "no loss of votes" test "$(grep -c '^ce ' "$out")" = 1

# Fragments tile by tile have the same bits.
infer --votes 2 -o "$work/two.npy"
infer --votes 2 --tile 1m -o "$work/tiled.npy"
same "$work/two.npy" "$work/tiled.npy"
run 0 infer $model --weights "$work/run" --input "$cloud" -o "$work/two.npy" --votes 2
says 'fragments of 2 copies'

# Where the net has no grid, one copy is the cloud: the classes of the plain result.
cat >"$work/each.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net each(p: cloud) { return p.rgb -> linear(8) -> relu -> linear(12) }
y = each(cloud)
loss ce = cross_entropy(y, cloud.label)
metric oa = accuracy(y, cloud.label)
END
run 0 train "$work/each.pnet" --config "$work/run.yaml" -o "$work/each" -q -j 1
run 0 infer "$work/each.pnet" --weights "$work/each" --input "$cloud" -o "$work/plain.csv" -q
run 0 infer "$work/each.pnet" --weights "$work/each" --input "$cloud" -o "$work/voted.csv" -q --votes 1
check "classes of one vote" cmp <(cut -d, -f1-8 "$work/plain.csv") <(cut -d, -f1-8 "$work/voted.csv")

# What is refused.
run 2 infer $model --weights "$work/run" --input "$cloud" -o "$work/none.npy" --votes 25
run 2 infer $model --weights "$work/run" --input "$cloud" -o "$work/none.npy" --votes 2 --value tiny.a
says '--votes: the result is no class'
cat >"$work/lossy.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net each(p: cloud) { return p.rgb -> linear(12) }
y = each(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 0 train "$work/lossy.pnet" --config "$work/run.yaml" -o "$work/lossy" -q -j 1
run 2 eval "$work/lossy.pnet" --weights "$work/lossy" --config "$work/run.yaml" --votes 2
says 'no metric of predicted classes'
finish
