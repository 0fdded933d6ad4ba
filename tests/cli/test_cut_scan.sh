# The origin of the coordinates that a model reads: two files cut from one scan give their points the same scores as the whole scan
# does, up to the reach of the network from the cut; without `origin:` they do not, and that is told. Heights above the lowest
# points. Completion of clouds that lie elsewhere than those of the training.
. tests/cli/common.sh
cat >"$work/model.pnet" <<'END'
pnet 1
param v = 30cm
param classes = 4
input cloud {
  xyz    : position
  height : feature[1]
  label  : class[classes] per point
}
block unit(w) { out = in -> conv(w, kernel=3) -> bn -> relu }
net small(p: cloud) {
  g = grid(p, v * [1, 2])
  a = p.height -> pool(mean, to=g[0]) -> unit(8)
  b = a -> conv(16, kernel=2, to=g[1]) -> bn -> relu -> unit(16)
  d = b -> conv(8, kernel=2, to=g[0]) -> bn -> relu
  return cat(d, a) -> linear(classes)
}
y = small(cloud)
loss   ce = cross_entropy(y, cloud.label)
metric oa = accuracy(y, cloud.label)
END
# A scan of 60 m on a slope around 100 m above the datum: the files get the offsets (153900, 463000, 0) and (154000, 463000, 100), and
# 100 m are no multiple of the cell.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 6000; i++) {
        x = 153980 + 60 * rand(); y = 463098 + 4 * rand(); z = 98.5 + 0.2 * sin(x / 7) + rand() * (rand() < 0.3) + (x - 153980) / 15
        printf "%.4f,%.4f,%.4f,%d\n", x, y, z, int(4 * rand())
    }
}' >"$work/points"
part() { # file, condition of awk
    { echo x,y,z,label; awk -F, "$2" "$work/points"; } >"$work/$1"
}
part whole.csv 1
part west.csv '$1 < 154010'
part east.csv '$1 >= 154010'
cat >"$work/own.yaml" <<'END'
pnet_dataset: 1
task: segmentation
classes: [a, b, c, d]
train: [west.csv, east.csv]
val: [whole.csv]
END
sed 's/^train/origin: [154000.25, 463100.7, 100]\ntrain/' "$work/own.yaml" >"$work/named.yaml"
for set in own named; do
    printf 'data: %s.yaml\nsteps: 20\nbatch_size: 1\ninputs: {cloud: {height: z}}\n' $set >"$work/$set.run"
    run 0 train "$work/model.pnet" --config "$work/$set.run" -o "$work/$set" -q
    cp "$err" "$work/$set.told"
done
check 'offsets that differ are told once' test "$(grep -c 'the model reads coordinates less an offset, here (15[0-9]*, 463000, [0-9]*), in another cloud' "$work/own.told")" = 1
check 'nothing is told with an origin' test ! -s "$work/named.told"

# far_ones RUN OPTIONS: how many points farther than 5 m from the cut have other scores in their part than in the whole, of how many.
# The network reaches less than 4 m: 2 cells of 30 cm and of 60 cm to either side in each convolution.
far_ones() {
    local run=$1 name
    shift
    for name in whole west east; do
        run 0 infer "$work/model.pnet" --weights "$work/$run" --input "$work/$name.csv" -o "$work/$name.out.csv" -q "$@"
    done
    awk -F, 'FNR == 1 { file++; next }
        { key = $1 " " $2 " " $3; value = $5 " " $6 }
        file == 1 { whole[key] = value; next }
        { far = $1 - 154010; if (far < 0) far = -far }
        far > 5 { all++; other += whole[key] != value }
        END { print other + 0, all + 0 }' "$work/whole.out.csv" "$work/west.out.csv" "$work/east.out.csv"
}
result=$(far_ones named)
check "scores with an origin: $result" test "${result% *}" = 0 -a "${result#* }" -gt 4500
result=$(far_ones named --origin file)
check "scores without an origin: $result" test "${result% *}" -gt 1000
says "was trained with the origin 154000.25, 463100.7, 100; it runs with that of each file, as the command line says"
result=$(far_ones own --origin 154000.25,463100.7,100)
check "scores with an origin of the command line: $result" test "${result% *}" = 0
# Another origin, away by whole cells: but for rounding at their borders grids are the same.
run 0 infer "$work/model.pnet" --weights "$work/named" --input "$work/west.csv" -o "$work/west.out.csv" -q
run 0 infer "$work/model.pnet" --weights "$work/named" --input "$work/west.csv" -o "$work/moved.csv" -q --origin 153999.65,463100.7,100
check 'by whole cells in x' test "$(diff "$work/moved.csv" "$work/west.out.csv" | grep -c '^<')" -lt 300 # of 3100
for wrong in 1,2 1,2,3,4 a,b,c 1,2,nan 1,2,1e300 ''; do
    run 2 infer "$work/model.pnet" --weights "$work/named" --input "$work/west.csv" -o "$work/none.csv" -q --origin "$wrong"
    says '--origin takes three coordinates in metres'
done

# It is recorded and printed, and eval takes it from the weights.
run 0 info "$work/named"
check 'origin of a checkpoint' grep -qx 'origin 154000.25, 463100.7, 100' "$out"
run 0 info "$work/named" --json
prints '"origin":[154000.25,463100.7,100]'
run 0 info "$work/east.csv"
check 'origin of a cloud' grep -qx '  origin 154000, 463000, 100' "$out"
run 0 info "$work/east.csv" --json
prints '"origin":[154000,463000,100]'
run 0 data info "$work/named.yaml"
check 'origin of a set' grep -qx '  origin 154000.25, 463100.7, 100' "$out"
evaluate() { run 0 eval "$work/model.pnet" --weights "$work/named" --config "$work/named.run" "$@" && grep '^ce' "$out"; }
here=$(evaluate)
check 'nothing is told' test ! -s "$err"
check "eval takes the origin of the weights: $here" test "$here" = "$(evaluate --data "$work/own.yaml")"
check 'eval without it' test "$here" != "$(evaluate --data "$work/own.yaml" --origin file)"
sed 's/^origin.*/origin: [154000, 463000, 0]/' "$work/named.yaml" >"$work/other.yaml"
check 'eval with the origin of another set' test "$here" = "$(evaluate --data "$work/other.yaml")"
says 'and runs with it; the data set names 154000, 463000, 0'
run 0 eval "$work/model.pnet" --weights "$work/own" --config "$work/named.run"
says 'was trained with the origin that of each file; it runs with 154000.25, 463100.7, 100, as the data set says'
run 0 infer "$work/model.pnet" --weights "$work/own" --input "$work/west.csv" --input "$work/east.csv" -o "$work/folder" -q
says 'in the clouds before (153900, 463000, 0)'

for weights in own named; do
    run 0 train "$work/model.pnet" --config "$work/own.run" -o "$work/from_$weights" -q --weights "$work/$weights" --steps 1
    [ $weights = own ] || says 'was trained with the origin 154000.25, 463100.7, 100; this training has that of each file'
done
run 0 train "$work/model.pnet" --config "$work/named.run" -o "$work/again" -q --weights "$work/named" --steps 1
check 'the same origin' test ! -s "$err"

# One offset in the training, another one in the cloud.
sed 's/^train.*/train: [west.csv]/; s/^val.*/val: [east.csv]/' "$work/own.yaml" >"$work/one.yaml"
printf 'data: one.yaml\nsteps: 1\ninputs: {cloud: {height: z}}\n' >"$work/one.run"
run 0 train "$work/model.pnet" --config "$work/one.run" -o "$work/one" -q
says 'here (154000, 463000, 100), in the training (153900, 463000, 0)'
run 0 infer "$work/model.pnet" --weights "$work/one" --input "$work/west.csv" -o "$work/a.csv" -q
check 'the offset of the training' test ! -s "$err"
run 0 infer "$work/model.pnet" --weights "$work/one" --input "$work/east.csv" -o "$work/a.csv" -q
says 'here (154000, 463000, 100), in the training (153900, 463000, 0)'
run 0 eval "$work/model.pnet" --weights "$work/one" --config "$work/one.run"
says 'here (154000, 463000, 100), in the training (153900, 463000, 0)'
run 0 infer "$work/model.pnet" --weights "$work/one" --input "$work/east.csv" -o "$work/a.csv" -q --map height=z_above_lowest
check 'heights above the lowest points need no origin' test ! -s "$err"

# Heights above the lowest points: the same in files of any offset.
awk -F, '{ printf "%.4f,%.4f,%.4f,%d\n", $1 - 153990, $2 - 463000, $3 + 900, $4 }' "$work/points" | { echo x,y,z,label; cat; } >"$work/raised.csv"
for name in whole raised; do
    run 0 infer "$work/model.pnet" --weights "$work/named" --input "$work/$name.csv" -o "$work/$name.h.csv" -q \
        --map height=z_above_lowest --origin "$([ $name = whole ] && echo 153990,463000,-900 || echo 0,0,0)"
    cut -d, -f5 "$work/$name.h.csv" >"$work/$name.classes"
done
check 'the same classes' test "$(diff "$work/whole.classes" "$work/raised.classes" | grep -c '^<')" -lt 20
finish
