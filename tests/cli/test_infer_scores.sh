# infer writes classes where a loss or metric takes the result as scores, and features where it has as many channels as there
# are classes: here three coordinates, compared by metrics with and without the three classes of the clouds.
. tests/cli/common.sh
cloud() { # NAME POINTS SHIFT
    awk -v n="$2" -v s="$3" 'BEGIN {
        printf "ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\nend_header\n", n
        for (i = 0; i < n; i++) printf "%.3f %.3f %.3f\n", i % 7 / 7 + s, i % 11 / 11, i % 5 / 5
    }' >"$work/$1.ply"
}
for i in 0 1 2; do
    cloud "part$i" $((20 + i)) "0.$i"
    cloud "full$i" $((40 + 7 * i)) 0
done
cat >"$work/set.yaml" <<'END'
pnet_dataset: 1
task: completion
classes: [cup, bowl, jug]
train: [{partial: part0.ply, full: full0.ply, label: cup}]
val:
  - {partial: part0.ply, full: full0.ply, label: cup}
  - {partial: part1.ply, full: full1.ply, label: bowl}
  - {partial: part2.ply, full: full2.ply, label: bowl}
END
printf 'data: set.yaml\nsteps: 1\n' >"$work/run.yaml"
plain='metric plain = completion(y, full.xyz)' named='metric named = completion(y, full.xyz, label=partial.kind)'
write() { # NAME LINE...
    local name=$1
    shift
    cat >"$work/$name.pnet" <<'END'
pnet 1
input partial { xyz : position  kind : class[3] per cloud }
input full { xyz : position }
net moved(p: cloud) { return p.xyz -> linear(3) }
y = moved(partial)
loss ch = chamfer(y, full.xyz)
END
    for line; do echo "$line" >>"$work/$name.pnet"; done
    run 0 train "$work/$name.pnet" --config "$work/run.yaml" -o "$work/$name" -q -j 1
    run 0 eval "$work/$name.pnet" --weights "$work/$name" --config "$work/run.yaml" --json -j 1
    cp "$out" "$work/$name.json"
}
write one "$plain"
write other "$named"
write both "$plain" "$named"
write turned "$named" "$plain"
for name in both turned; do
    check "plain of $name" test "$(number plain "$work/$name.json")" = "$(number plain "$work/one.json")"
    check "named of $name" test "$(number named "$work/$name.json")" = "$(number named "$work/other.json")"
    run 0 infer "$work/$name.pnet" --weights "$work/$name" --input "$work/part0.ply" -o "$work/$name.ply" -q
    check "coordinates" grep -qa '^property float feature_2' "$work/$name.ply"
    check "no classes" hides -qa '^property [a-z0-9]* \(class\|score\)$' "$work/$name.ply"
done
# the metric of the labels is the mean over classes
check "two means" test "$(number plain "$work/one.json")" != "$(number named "$work/other.json")"
finish
