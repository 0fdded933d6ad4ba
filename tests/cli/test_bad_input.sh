# What users hand over by mistake: clear messages with the right exit code, and no output file left.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 600 --seed 2 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
weights=$work/run/last/weights.safetensors
whole=$work/rooms/test/000009.ply
clouds=$work/clouds results=$work/results
mkdir "$clouds" "$results"

# One line of text on standard error, from pnetc; help may follow.
one_line() {
    check "one line: $(head -c 300 "$err")" test "$(grep -vc '^  help: ' "$err")" = 1
    check "from pnetc: $(head -c 300 "$err")" grep -q '^pnetc: ' "$err"
}

# refuse CODE CLOUD TEXT: infer ends with the code, one line that holds the text, and no file.
refuse() {
    run "$1" infer $model --weights "$work/run" --input "$clouds/$2" -o "$results/out.ply" -q
    one_line
    says "$3"
    run "$1" infer $model --weights "$work/run" --input "$clouds/$2" -o "$results/out.npy" -q
    nothing_left "$results"
}

# accept CLOUD ROWS: infer gives that many rows, as PLY and as a matrix.
accept() {
    run 0 infer $model --weights "$work/run" --input "$clouds/$1" -o "$results/out.ply" -q
    check "$1: rows" test "$(ply_rows "$results/out.ply")" = "$2"
    run 0 infer $model --weights "$work/run" --input "$clouds/$1" -o "$results/out.npy" -q
    check "$1: shape $(npy_shape "$results/out.npy")" test "$(npy_shape "$results/out.npy")" = "$2 12"
    rm -f "$results"/*
}

# ascii NAME: points from standard input, x y z red green blue a line.
ascii() {
    cat >"$work/points"
    {
        printf 'ply\nformat ascii 1.0\nelement vertex %d\n' "$(wc -l <"$work/points")"
        printf 'property double %s\n' x y z
        printf 'property uchar %s\n' red green blue
        echo end_header
        cat "$work/points"
    } >"$clouds/$1"
}

# lines COUNT EXPRESSIONS: x y z of point i, by awk, and a colour.
lines() {
    awk -v n="$1" "BEGIN { for (i = 0; i < n; i++) printf \"%.17g %.17g %.17g %d 20 30\\n\", $2, i % 256 }"
}

# Files that are not what they should be.
: >"$clouds/empty.ply"
refuse 4 empty.ply empty.ply
head -c 300 /dev/zero >"$clouds/zeros.ply"
refuse 4 zeros.ply zeros.ply
head -c 3000 "$pnetc" >"$clouds/program.pcd"
refuse 4 program.pcd program.pcd
size=$(wc -c <"$whole")
for part in 20 100 $((size / 2)) $((size - 1)); do
    head -c "$part" "$whole" >"$clouds/cut$part.ply"
    refuse 4 "cut$part.ply" "cut$part.ply"
done
printf 'x,y,z\n1,2,3\n4,five,6\n' >"$clouds/words.csv"
refuse 4 words.csv words.csv:3
refuse 1 missing.ply missing.ply
mkdir "$clouds/folder.ply"
refuse 1 folder.ply folder.ply
lines 20 'i, i, i' | cut -d ' ' -f 1-3 >"$clouds/plain.xyz"
refuse 4 plain.xyz 'plain.xyz: has no field for cloud.rgb'

# Few points, and points in one place.
printf '' | ascii none.ply
accept none.ply 0
lines 1 '1, 2, 3' | ascii one.ply
accept one.ply 1
lines 50 '1, 2, 3' | ascii same.ply
accept same.ply 50
{
    lines 30 'i / 10, i % 3, 0'
    printf 'nan 0 0 1 2 3\n0 inf 0 1 2 3\n'
    lines 5 'i, 1, 2'
} | ascii nan.ply
accept nan.ply 37
run 0 infer $model --weights "$work/run" --input "$clouds/nan.ply" -o "$results/nan.xyz"
says "dropped 2 of 37 points"
check "dropped points keep their row" test "$(grep -ci 'nan.*-1' "$results/nan.xyz")" = 2
rm -f "$results"/*
printf 'nan nan nan 1 2 3\n' | ascii nothing.ply
accept nothing.ply 1

# 10 km away from the origin, and where maps are: the same classes as at home, for coordinates in steps
# that a double and a float hold both.
lines 300 'i % 20 / 8, int(i / 20) / 8, i % 7 / 16' | ascii home.ply
lines 300 '10000 + i % 20 / 8, int(i / 20) / 8 - 20000, i % 7 / 16' | ascii away.ply
lines 300 '500000 + i % 20 / 8, 5400000 + int(i / 20) / 8, 200 + i % 7 / 16' | ascii utm.ply
for place in home away utm; do
    accept $place.ply 300
    run 0 infer $model --weights "$work/run" --set v=25cm --input "$clouds/$place.ply" -o "$results/$place.pcd" -q
    run 0 infer $model --weights "$work/run" --set v=25cm --input "$clouds/$place.ply" -o "$work/$place.xyz" -q
done
rm -f "$results"/*
for place in away utm; do
    cut -d ' ' -f 4- "$work/home.xyz" >"$work/a"
    cut -d ' ' -f 4- "$work/$place.xyz" >"$work/b"
    check "$place: classes" test "$(awk '{ print $4 }' "$work/a" | cksum)" = "$(awk '{ print $4 }' "$work/b" | cksum)"
done
check "coordinates come back" grep -q '^500000.125 5400000 200.0625' "$work/utm.xyz"
lines 2 'i * 1e12, 0, 0' | ascii wide.ply
# the reader warns of what float32 loses, too
run 4 infer $model --weights "$work/run" --input "$clouds/wide.ply" -o "$results/out.ply" -q
says 'off by up to 4.1e+03 m'
says 'beyond the 1048576 cells'
nothing_left "$results"

# Outputs that cannot be.
run 2 infer $model --weights "$work/run" --input "$whole" -o "$results/out.doc" -q
run 1 infer $model --weights "$work/run" --input "$whole" -o "$work/nowhere/out.ply" -q
run 2 infer $model --weights "$work/run" --input "$whole"
run 3 infer $model --weights "$work/run" --input "$whole" -o "$results/out.ply" --net tinny
says "did you mean tiny"
run 3 infer $model --weights "$work/run" --input "$whole" -o "$results/out.ply" --value tiny.bb
says "did you mean"
nothing_left "$results"

# Weights that are damaged, or another model's.
spoil() { # command, exit code, text: a copy of the run's checkpoint, changed
    rm -rf "$work/spoiled"
    cp -r "$work/run/last" "$work/spoiled"
    (cd "$work/spoiled" && eval "$1")
    run "$2" infer $model --weights "$work/spoiled" --input "$whole" -o "$results/out.ply" -q
    one_line
    says "$3"
    nothing_left "$results"
}
spoil 'head -c 1000 weights.safetensors >w; mv w weights.safetensors' 4 weights.safetensors
spoil 'printf "\001" | dd of=weights.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null' 4 weights.safetensors
spoil 'rm weights.safetensors' 1 weights.safetensors
spoil 'echo "{" >state.json' 4 state.json
spoil 'rm state.json' 1 state.json
head -c 5 "$weights" >"$work/five.safetensors"
printf '\377\377\377\377\377\377\377\177{}' >"$work/huge.safetensors"
head -c $(($(wc -c <"$weights") - 4)) "$weights" >"$work/short.safetensors"
sed 's/F32/F33/' "$weights" >"$work/type.safetensors"
for w in five huge short type; do
    run 4 infer $model --weights "$work/$w.safetensors" --input "$whole" -o "$results/out.ply" -q
    one_line
    says "$w.safetensors"
done

# Weights that are not finite, one of them and all; a plain file, as a checkpoint knows its bytes.
begin=$(head -c 8 "$weights" | od -An -tu8 | tr -d ' ')
one=$(head -c $((begin + 8)) "$weights" | grep -aoE '"tiny.a.unit.out.conv.weight":[^}]*"data_offsets": *\[[0-9]+' | grep -oE '[0-9]+$')
cp "$weights" "$work/nan.safetensors"
printf '\000\000\300\177\000\000\200\377' | dd of="$work/nan.safetensors" bs=1 seek=$((8 + begin + one)) conv=notrunc 2>/dev/null
{
    head -c $((8 + begin)) "$weights"
    tail -c +$((9 + begin)) "$weights" | tr '\000-\377' '\377'
} >"$work/all.safetensors"
run 4 infer $model --weights "$work/nan.safetensors" --input "$whole" -o "$results/out.ply" -q
one_line
says ' 2 of the '
says '`tiny.a.unit.out.conv.weight` are not finite'
run 4 eval $model --weights "$work/nan.safetensors" --config "$work/run.yaml"
says '`tiny.a.unit.out.conv.weight` are not finite'
run 4 infer $model --weights "$work/all.safetensors" --input "$whole" -o "$results/out.ply" -q
says 'are not finite'
nothing_left "$results"

# Finite weights whose products are not: a warning.
{
    head -c $((8 + begin)) "$weights"
    tail -c +$((9 + begin)) "$weights" | tr '\000-\377' '\176'
} >"$work/large.safetensors"
run 0 infer $model --weights "$work/large.safetensors" --input "$whole" -o "$results/out.npy" -q
says 'numbers of the result are not finite'
rm "$results/out.npy"
run 0 infer $model --weights "$weights" --input "$whole" -o "$results/out.ply" -q
check "no warning" test ! -s "$err"
rm "$results/out.ply"
run 3 infer $model --weights "$weights" --set c=10 --input "$whole" -o "$results/out.ply" -q
says "tiny.a.unit.out.conv.weight"
run 3 infer models/fcgf.pnet --weights "$weights" --input "$whole" -o "$results/out.ply" -q
says "fcgf.s.0.conv.weight"
run 3 eval $model --weights "$weights" --config "$work/run.yaml" --set c=10
says "tiny.a.unit.out.conv.weight"
run 1 infer $model --weights "$work/none" --input "$whole" -o "$results/out.ply" -q
nothing_left "$results"

# Data sets: labels that do not fit. Points in a file, one label a line beside it.
seq 0 19 | awk '{ print $1, 0, 0, 10, 20, 30 }' | tee "$work/a.txt" >"$work/b.txt"
index() { # classes, then the command whose output is the labels
    local classes=$1
    shift
    "$@" >"$work/b.labels"
    seq 0 19 | awk '{ print $1 % 3 }' >"$work/a.labels"
    cat >"$work/index.yaml" <<END
pnet_dataset: 1
task: segmentation
classes: [$classes]
columns: [x, y, z, red, green, blue]
train: [{cloud: a.txt, labels: a.labels}, {cloud: b.txt, labels: b.labels}]
END
}
cat >"$work/labels.yaml" <<END
data: index.yaml
inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}
set: {classes: 3}
steps: 3
END
train() { # exit code, text
    rm -rf "$work/bad"
    run "$1" train $model --config "$work/labels.yaml" -o "$work/bad" -q -j 1
    [ "$1" = 0 ] || says "$2"
    [ "$1" = 0 ] || check "no checkpoint" test ! -e "$work/bad/last" -a ! -e "$work/bad/best"
}
index 'a, b, c' awk 'BEGIN { for (i = 0; i < 20; i++) print i % 3 }'
train 0
index 'a, b, c' awk 'BEGIN { for (i = 0; i < 20; i++) print (i == 13 ? 7 : i % 3) }'
train 4 b.labels
says 13
index 'a, b, c' awk 'BEGIN { for (i = 0; i < 19; i++) print i % 3 }'
train 4 b.labels
says 19
says 20
index 'a, b, c' echo class
train 4 b.labels
index 'a, b' awk 'BEGIN { for (i = 0; i < 20; i++) print i % 2 }'
train 2 classes
index 'a, b, c' awk 'BEGIN { for (i = 0; i < 20; i++) print i % 3 }'
sed -i 's/scale: 1.255//; s/\[red, green, blue\],/[red, gren, blue]/' "$work/labels.yaml"
train 4 gren
sed -i 's/rgb:/rgbb:/' "$work/labels.yaml"
train 2 rgbb
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a]\ntrian: [x.ply]\n' >"$work/index.yaml"
train 4 train
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a]\ntrain: [x.ply]\n' >"$work/index.yaml"
train 4 x.ply
# Voxels of an order so small that points lie beyond their range.
cat >"$work/order.pnet" <<END
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net n(p: cloud) { return p.rgb -> linear(24) -> attend(1, order=hilbert, cell=0.001mm) -> linear(12) }
y = n(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 4 train "$work/order.pnet" --config "$work/run.yaml" -o "$work/order" -q -j 1
one_line
says "points of level 'cloud' are more than 2^20 cells of 1e-06 m from the origin"
nothing_left "$work/order"
finish
