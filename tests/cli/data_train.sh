# Real data sets, through index files as a user would write them: segmentation of ScanNet and
# SemanticKITTI in both modes, classification of Sydney Urban Objects and ModelNet10, and of objects of KITTI in HDF5 files, where
# libhdf5 is installed.
data=${PNET_TEST_DATA:-}/data
if [ ! -f "$data/MANIFEST.md" ]; then
    echo 'skipped: PNET_TEST_DATA names no folder with data/'
    exit 77
fi
. tests/cli/common.sh
# PNET_TEST_DEVICE=cuda: on a GPU, the large models too. PNET_SHORT: three steps each, for tools under which every launch
# takes long; no loss falls by that.
device=${PNET_TEST_DEVICE:-cpu}
code=0
"$pnetc" infer tests/cli/tiny.pnet --weights none --input none --device "$device" >/dev/null 2>"$err" || code=$?
if [ "$code" = 6 ]; then
    echo "skipped: $(cat "$err")"
    exit 77
fi

# losses FOLDER: the training loss of each step.
losses() {
    grep '"gradient_norm"' "$1/metrics.jsonl" | sed -E 's/.*"loss": *([0-9.eE+-]+).*/\1/'
}

# falls FOLDER: the mean over the last third of the steps is below nine tenths of that over the first.
falls() {
    losses "$1" | awk -v short="${PNET_SHORT:-}" '{ x[NR] = $1 }
        END { n = int(NR / 3); for (i = 1; i <= n; i++) { a += x[i]; b += x[NR + 1 - i] }
        printf "%.3f %.3f\n", a / n, b / n; exit !(n > 0 && (b < 0.9 * a || short)) }' >"$work/fall"
}

# train MODEL --config RUN ...: as pnetc does, in few steps where that is asked for.
train() {
    run 0 train "$@" ${PNET_SHORT:+--steps 3}
}

scannet=$data/segmentation/scannet
{
    cat <<END
pnet_dataset: 1
task: segmentation
classes: [wall, floor, cabinet, bed, chair, sofa, table, door, window, bookshelf, picture, counter, desk, curtain,
  refrigerator, shower curtain, toilet, sink, bathtub, otherfurniture]
columns: [x, y, z, red, green, blue]
train:
END
    for s in 0000 0001 0002 0003 0004; do echo "  - {cloud: $scannet/scene${s}_*_vert.npy, labels: $scannet/scene${s}_*_sem_label.npy}"; done
    echo val:
    for s in 0005 0006; do echo "  - {cloud: $scannet/scene${s}_*_vert.npy, labels: $scannet/scene${s}_*_sem_label.npy}"; done
    cat <<END
map: {1: wall, 2: floor, 3: cabinet, 4: bed, 5: chair, 6: sofa, 7: table, 8: door, 9: window, 10: bookshelf,
  11: picture, 12: counter, 14: desk, 16: curtain, 24: refrigerator, 28: shower curtain, 33: toilet, 34: sink,
  36: bathtub, 39: otherfurniture}
map_other: ignore
END
} >"$work/scannet.yaml"
kitti=$data/segmentation/semantickitti/sequences
{
    cat <<END
pnet_dataset: 1
task: segmentation
classes: [car, bicycle, motorcycle, truck, other-vehicle, person, bicyclist, motorcyclist, road, parking, sidewalk,
  other-ground, building, fence, vegetation, trunk, terrain, pole, traffic-sign]
train:
END
    for s in 00 03 04; do echo "  - {cloud: $kitti/$s/velodyne/*.bin, labels: $kitti/$s/labels/*.label}"; done
    cat <<END
val:
  - {cloud: $kitti/10/velodyne/*.bin, labels: $kitti/10/labels/*.label}
map: {0: ignore, 1: ignore, 10: car, 11: bicycle, 13: other-vehicle, 15: motorcycle, 16: other-vehicle, 18: truck,
  20: other-vehicle, 30: person, 31: bicyclist, 32: motorcyclist, 40: road, 44: parking, 48: sidewalk, 49: other-ground,
  50: building, 51: fence, 52: ignore, 60: road, 70: vegetation, 71: trunk, 72: terrain, 80: pole, 81: traffic-sign,
  99: ignore, 252: car, 253: bicyclist, 254: person, 255: motorcyclist, 256: other-vehicle, 257: other-vehicle,
  258: truck, 259: other-vehicle}
END
} >"$work/kitti.yaml"

# segment NAME MODEL MODE CLOUD ROWS CLASSES [PRECISION]: trains, evaluates, infers one cloud of the validation.
segment() {
    local run=$work/$1-$3
    train "$2" --config "$work/$1.run" -o "$run" --mode "$3" --device "$device" --precision "${7:-fp32}" -q || return
    valid_json "$run/metrics.jsonl"
    check "$1 $3: the loss falls" falls "$run"
    sed "s/^/$1 $3: loss, first and last third: /" "$work/fall"
    run 0 eval "$2" --weights "$run/last" --config "$work/$1.run" --mode "$3" --device "$device" --json
    valid_json "$out"
    check "$1 $3: accuracy" awk -v x="$(number oa "$out")" 'BEGIN { exit !(x > 0 && x <= 1) }'
    run 0 infer "$2" --weights "$run/last" --mode "$3" --device "$device" --input "$4" -o "$run/one.ply" --colour
    check "$1 $3: rows" test "$(ply_rows "$run/one.ply")" = "$5"
    run 0 infer "$2" --weights "$run/last" --mode "$3" --device "$device" --input "$4" -o "$run/one.npy"
    check "$1 $3: shape" test "$(npy_shape "$run/one.npy")" = "$5 $6"
}

cat >"$work/scannet.run" <<END
data: scannet.yaml
inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}
set: {v: 15cm, classes: 20}
steps: 24
batch_size: 2
max_points: 12000
lr: 0.02
class_weights: balanced
augment: {rotate: z, scale: [0.9, 1.1]}
eval_every: 0
END
cat >"$work/kitti.run" <<END
data: kitti.yaml
inputs: {cloud: {rgb: {field: [intensity]}}}
set: {v: 60cm, classes: 19, width: 1}
steps: 8
max_points: 20000
lr: 0.003
augment: {rotate: z, flip: [x]}
eval_every: 0
END
for mode in native voxel; do
    segment scannet tests/cli/tiny.pnet $mode "$scannet/scene0006_01_vert.npy" 50000 20
    segment kitti models/minkunet18a.pnet $mode "$kitti/10/velodyne/000009.bin" 122492 19
done
# The recipe for attention on real scans, in two steps.
run 0 train models/ptv3.pnet --config models/ptv3_scans.yaml --data "$work/scannet.yaml" -o "$work/scans" --device "$device" \
    -q --steps 2 --set c=16 --set v=20cm --set-config max_points=8000
check "scans: two steps" test "$(losses "$work/scans" | grep -cE '^[0-9.]+$')" = 2
run 0 eval models/ptv3.pnet --weights "$work/scans" --config models/ptv3_scans.yaml --data "$work/scannet.yaml" \
    --device "$device" --json
check "scans: accuracy" awk -v x="$(number oa "$out")" 'BEGIN { exit !(x > 0 && x <= 1) }'
check "scans: classes" test "$(sed 's/.*"iou.per_class":\[\([^]]*\)\].*/\1/' "$out" | tr ',' '\n' | grep -c .)" = 20
if [ "$device" != cpu ]; then
    sed -e 's/v: 15cm, classes: 20/v: 5cm, classes: 20/; s/max_points: 12000/max_points: 50000/; s/steps: 24/steps: 40/' \
        -e 's/lr: 0.02/lr: 0.003/' "$work/scannet.run" | grep -v '^inputs' >"$work/fcgf.run"
    sed -e 's/v: 60cm/v: 20cm/; s/, width: 1//; s/max_points: 20000/max_points: 130000/; s/steps: 8/steps: 40/' \
        -e 's/^inputs.*/inputs: {cloud: {rgb: {value: 1}}}/' "$work/kitti.run" >"$work/frames.run"
    segment fcgf models/fcgf.pnet native "$scannet/scene0006_01_vert.npy" 50000 20
    segment frames models/minkunet18a.pnet native "$kitti/10/velodyne/000009.bin" 122492 19
    cp "$work/fcgf.run" "$work/fcgf_bf16.run"
    segment fcgf_bf16 models/fcgf.pnet native "$scannet/scene0006_01_vert.npy" 50000 20 bf16
fi

# Sydney: the class stands in front of the first dot of a file's name, the fold in a list.
objects=$data/classification/sydney_urban_objects
fold() { # numbers of the folds
    for k in "$@"; do
        tr -d '\r' <"$objects/folds/fold$k.txt" | while read -r f; do
            [ ! -f "$objects/objects/$f" ] || echo "  - {cloud: $objects/objects/$f, label: ${f%%.*}}"
        done
    done
}
{
    printf 'pnet_dataset: 1\ntask: classification\n'
    echo 'classes: [4wd, building, bus, car, pedestrian, pillar, pole, traffic_lights, traffic_sign, tree, truck, trunk, ute, van]'
    echo train:
    fold 0 1
    echo val:
    fold 2
} >"$work/sydney.yaml"
cat >"$work/sydney.run" <<END
data: sydney.yaml
inputs: {cloud: {normal: {value: 0}}}
set: {v: 20cm, classes: 14, c: 16}
steps: 60
batch_size: 16
lr: 0.01
augment: {rotate: z}
skip_empty: yes
eval_every: 0
END
archive=$data/classification/modelnet10_voxel30/modelnet10_train.npz
cat >"$work/modelnet.yaml" <<END
pnet_dataset: 1
task: classification
classes: [bathtub, bed, chair, desk, dresser, monitor, night_stand, sofa, table, toilet]
train: [{array: $archive, points: X_train, labels: y_train, kind: voxels, cell: 5cm, drop_every: 5}]
val: [{array: $archive, points: X_train, labels: y_train, kind: voxels, cell: 5cm, keep_every: 50}]
END
cat >"$work/modelnet.run" <<END
data: modelnet.yaml
inputs: {cloud: {normal: {value: 0}}}
set: {v: 10cm, classes: 10, c: 16}
steps: 60
batch_size: 12
lr: 0.01
skip_empty: yes
eval_every: 0
END
clusters=$data/classification/kitti_objects_h5
cat >"$work/objects.yaml" <<END
pnet_dataset: 1
task: classification
classes: [cyclist, car, pedestrian, misc]
train: [{array: $clusters/train_set_*.h5, labels: label}]
val: [{array: $clusters/val_set.h5, labels: label}]
END
sed -e 's/modelnet/objects/; s/v: 10cm, classes: 10/v: 20cm, classes: 4/' "$work/modelnet.run" >"$work/objects.run"
sets='sydney modelnet objects'
"$pnetc" info "$data/formats/h5/PDAL__autzen.h5" >/dev/null 2>"$err" || { sets='sydney modelnet'; cat "$err"; }
for name in $sets; do
    train models/shapes.pnet --config "$work/$name.run" -o "$work/$name" -q --device "$device" || continue
    check "$name: the loss falls" falls "$work/$name"
    sed "s/^/$name: loss, first and last third: /" "$work/fall"
    run 0 eval models/shapes.pnet --weights "$work/$name/last" --config "$work/$name.run" --device "$device" --json
    valid_json "$out"
    classes=$(grep -o 'classes: [0-9]*' "$work/$name.run" | grep -o '[0-9]*')
    # better than guessing
    check "$name: accuracy $(number oa "$out")" awk -v x="$(number oa "$out")" -v n="$classes" -v short="${PNET_SHORT:-}" \
        'BEGIN { exit !((x > 1.5 / n || short) && x <= 1) }'
done
if [ "$device" != cpu ]; then
    # The coarsest level has cells of 192 v: v is so small that a shape has many of them. Most points then have no neighbours
    # in the first layers, and a norm of equal numbers leaves nothing: coordinates are the input.
    sed -e 's/v: 10cm, classes: 10, c: 16/v: 2mm, classes: 10/; s/normal: {value: 0}/rgb: {field: [x, y, z]}/' \
        -e 's/lr: 0.01/lr: 0.0003/' "$work/modelnet.run" >"$work/resnet18.run"
    for precision in fp32 bf16; do
        train models/resnet18.pnet --config "$work/resnet18.run" -o "$work/resnet18" -q --device "$device" --precision $precision
        check "resnet18 in $precision: the loss falls" falls "$work/resnet18"
        sed "s/^/resnet18 in $precision: loss, first and last third: /" "$work/fall"
        rm -r "$work/resnet18"
    done
fi
run 0 infer models/shapes.pnet --weights "$work/sydney/last" --input "$objects/objects/car.46.8444.bin" --json
valid_json "$out"
prints '"name"'
run 0 infer models/shapes.pnet --weights "$work/sydney/last" --input "$objects/objects/car.46.8444.bin" -o "$work/car.npy" -q
check "one row a cloud" test "$(npy_shape "$work/car.npy")" = "1 14"
finish
