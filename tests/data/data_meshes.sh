# Completion from 390 meshes of the Princeton Shape Benchmark, with the classes of its list: every one is read, seen by the camera
# and cut, and a net trains on them.
meshes=${PNET_TEST_DATA:-}/data/classification/psb_train
if [ ! -f "$meshes/train.cla" ]; then
    echo 'skipped: PNET_TEST_DATA names no folder with data/classification/psb_train'
    exit 77
fi
. tests/cli/common.sh
mkdir "$work/psb"

# The list has blocks: a class, its parent and a count, then the number of each model. Prints "class file" of those that are there.
awk 'NF == 3 { class = $2 "_" $1 } NF == 1 { print class, "m" $1 ".off" }' "$meshes/train.cla" | while read -r class file; do
    [ ! -f "$meshes/$file" ] || echo "$class $file"
done >"$work/list"
check "all meshes have a class" test "$(wc -l <"$work/list")" = "$(ls "$meshes" | grep -c '\.off$')"

index() { # views
    printf 'pnet_dataset: 1\ntask: completion\nclasses: [%s]\n' "$(cut -d ' ' -f 1 "$work/list" | sort -u | paste -s -d , -)"
    awk -v meshes="$meshes" -v views="$1" '
        { split_of = NR % 3 ? "train" : "val"; line[split_of] = line[split_of] sprintf( \
            "  - {mesh: \"%s/%s\", points: 600, label: %s, views: {%s}}\n", meshes, $2, $1, views) }
        END { printf "train:\n%sval:\n%s", line["train"], line["val"] }' "$work/list"
}
# numbers NAME: the least and the most that data info prints under that name, of both splits.
numbers() { sed -nE "s/^ +$1 +([0-9.e+-]+) +[0-9.e+-]+ +([0-9.e+-]+).*/\1 \2/p" "$out" | tr '\n' ' '; }
within() { # name, least, most
    check "$1: $(numbers "$1")" awk -v n="$(numbers "$1")" -v least="$2" -v most="$3" '
        BEGIN { if (split(n, v, " ") != 4) exit 1; for (i in v) if (v[i] < least || v[i] > most) exit 1 }'
}
index 'points: 256' >"$work/psb/dataset.yaml"
run 0 data info "$work/psb" --radius 20cm
prints "train       260 pairs"
prints "val         130 pairs"
within "points of the partial" 256 256
within "points of the full" 600 600
within "farthest of the full" 0.7 1
within "partial near the full" 90 100
within "full near the partial" 5 100

index 'points: 256, kind: cut, part: 50%' >"$work/psb/dataset.yaml"
run 0 data info "$work/psb" --radius 1mm
within "partial near the full" 100 100
within "full near the partial" 40 60 # 256 of 300 points are left of 600, others may lie as near

cat >"$work/tiny.pnet" <<END
pnet 1
param classes = 10
input partial { xyz : position
  at : feature[3] }
input full { xyz : position
  at   : feature[3]
  kind : class[classes] per cloud }
net small(p: cloud) {
  return p.at -> linear(16) -> bn -> relu -> pool(max, to=sample) -> linear(classes)
}
y = small(partial)
loss   l  = cross_entropy(y, full.kind)
loss   m  = mse(partial.at -> linear(3) -> pool(mean, to=sample), full.at -> pool(mean, to=sample))
metric oa = accuracy(y, full.kind)
END
cat >"$work/run.yaml" <<END
data: psb
steps: 20
batch_size: 8
set: {classes: $(cut -d ' ' -f 1 "$work/list" | sort -u | wc -l)}
inputs: {partial: {at: [x, y, z]}, full: {at: [x, y, z]}}
augment: {flip: [x, z]}
eval_every: {steps: 20}
END
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
run 0 train "$work/tiny.pnet" --config "$work/run.yaml" -o "$work/again" -q -j 2 --set-config workers=3
same "$work/run/last/weights.safetensors" "$work/again/last/weights.safetensors"
finish
