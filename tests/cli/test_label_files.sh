# infer writes the label files of data sets: a label for each point of the file, in its order, as the set numbers its classes.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
points=400
velodyne=$work/kitti/sequences/00/velodyne labels=$work/kitti/sequences/00/labels
mkdir -p "$velodyne" "$labels"

# Scans as SemanticKITTI has them: four float32 a point, and uint32 with the instance above the class.
raw=(10 252 11 15 18 20 30 31 32 40 44 48 49 0 253)
for scan in 000000 000001; do
    awk -v n=$points -v shift="$scan" 'BEGIN {
        print "x y z intensity"
        for (i = 0; i < n; i++) printf "%.2f %.2f %.2f %.3f\n", i % 20 / 4 + shift, int(i / 20) / 4, i % 7 / 10, i * 37 % 256 / 256
    }' >"$work/$scan.txt"
    run 0 register "$work/$scan.txt" "$work/$scan.txt" --from "$work/identity.txt" -o "$velodyne/$scan.bin" -q
    bytes=
    for ((i = 0; i < points; i++)); do
        printf -v one '\\x%02x\\x00\\x07\\x00' "${raw[i % 15]}"
        bytes+=$one
    done
    printf "$bytes" >"$labels/$scan.label"
done
cat >"$work/kitti/dataset.yaml" <<'YAML'
pnet_dataset: 1
task: segmentation
classes: [car, bicycle, motorcycle, truck, other-vehicle, person, bicyclist, motorcyclist, road, parking, sidewalk, other-ground]
map: {0: ignore, 10: car, 252: car, 11: bicycle, 15: motorcycle, 18: truck, 20: other-vehicle, 30: person, 31: bicyclist,
  253: bicyclist, 32: motorcyclist, 40: road, 44: parking, 48: sidewalk, 49: other-ground}
train: [{cloud: sequences/00/velodyne/*.bin, labels: sequences/00/labels/*.label}]
YAML
codes="10 11 15 18 20 30 31 32 40 44 48 49"
train() { # DATA_SET RUN_FOLDER CONFIG_LINE..
    printf '%s\n' "data: $1" 'steps: 12' 'batch_size: 1' 'eval_every: 0' 'lr: 0.05' 'optimizer: {name: adam}' "${@:3}" >"$work/run.yaml"
    run 0 train $model --config "$work/run.yaml" -o "$2" -q -j 1
}
train kitti "$work/run" 'inputs: {cloud: {rgb: [x, intensity, z]}}'
infer() { # exit code, cloud, output, options
    local want=$1 cloud=$2 to=$3
    shift 3
    run "$want" infer $model --weights "${weights:-$work/run}" --input "$cloud" -o "$to" "$@"
}

# best FILE.npy WIDTH: the class of the highest score of each row; nan where the row has no numbers.
best() {
    local head
    head=$(od -An -t u2 -j 8 -N 2 "$1")
    od -An -v -t f4 -w$((4 * $2)) -j $((10 + head)) "$1" |
        awk '{ best = 1; for (i = 2; i <= NF; i++) if ($i + 0 > $best + 0) best = i; print (tolower($1) ~ /nan/ ? "nan" : best - 1) }'
}
# coded CODES: the labels of these classes.
coded() { awk -v codes="$1" 'BEGIN { split(codes, code, " ") } { print $1 == "nan" ? 0 : code[$1 + 1] + 0 }'; }
numbers() { od -An -v -t "u$2" -w"$2" "$1" | tr -d ' '; }
cloud=$velodyne/000000.bin

# SemanticKITTI: the smallest of the labels that the training mapped to the class.
infer 0 "$cloud" "$work/scores.npy" -q
best "$work/scores.npy" 12 >"$work/classes"
check "a row for each point" test "$(wc -l <"$work/classes")" = $points
check "classes differ" test "$(sort -u "$work/classes" | wc -l)" -gt 2
coded "$codes" <"$work/classes" >"$work/want"
infer 0 "$cloud" "$work/one.label"
says 'several labels of the training are one class, which is written as the smallest of them (--classification CLASS=CODE takes another): car 10, bicyclist 31'
check "four bytes a point" test "$(wc -c <"$work/one.label")" = $((4 * points))
numbers "$work/one.label" 4 >"$work/got"
same "$work/want" "$work/got"
infer 0 "$cloud" "$work/other.label" --classification car=252,bicyclist=253
check "nothing is uncertain" test ! -s "$err"
coded "252 ${codes#10 }" <"$work/classes" | sed 's/^31$/253/' >"$work/want"
numbers "$work/other.label" 4 >"$work/got"
same "$work/want" "$work/got"
infer 0 "$cloud" "$work/table.label" --classification semantickitti
check "nothing is uncertain" test ! -s "$err"
same "$work/one.label" "$work/table.label"

# A folder of scans. The set reads these labels as its own: the net agrees with itself.
infer 0 "$velodyne/*.bin" "$work/kitti/sequences/00/predictions" --format label -q
check "the names of the scans" test "$(ls "$work/kitti/sequences/00/predictions" | tr '\n' ' ')" = '000000.label 000001.label '
same "$work/one.label" "$work/kitti/sequences/00/predictions/000000.label"
sed 's/labels: .*label/labels: sequences\/00\/predictions\/*.label/; s/^train/test/' "$work/kitti/dataset.yaml" >"$work/kitti/own.yaml"
printf 'data: kitti/own.yaml\ninputs: {cloud: {rgb: [x, intensity, z]}}\n' >"$work/own.yaml"
run 0 eval $model --weights "$work/run" --config "$work/own.yaml" --split test -q --json
check "accuracy 1" test "$(number oa "$out")" = 1
cmp -s "$labels/000000.label" "$work/one.label" && fail 'the net learned all: the comparison above says nothing'

# Points that were dropped get 0.
cp "$cloud" "$work/holes.bin"
printf '\0\0\300\177' | dd of="$work/holes.bin" bs=1 seek=$((16 * 5 + 4)) conv=notrunc 2>/dev/null
infer 0 "$work/holes.bin" "$work/holes.npy" -q
infer 0 "$work/holes.bin" "$work/holes.label" -q
best "$work/holes.npy" 12 >"$work/classes_holes"
check "one row without a class" test "$(grep -n nan "$work/classes_holes")" = 6:nan
coded "$codes" <"$work/classes_holes" >"$work/want"
numbers "$work/holes.label" 4 >"$work/got"
same "$work/want" "$work/got"

# nuScenes: a byte a point. Of the table, classes without a name in it get 0.
infer 0 "$cloud" "$work/a_lidarseg.bin" --classification nuscenes
says 'these classes have no label, and are written as 0: other-vehicle, person, bicyclist, motorcyclist, road, parking, other-ground'
coded "4 2 6 10 0 0 0 0 0 0 13 0" <"$work/classes" >"$work/want"
numbers "$work/a_lidarseg.bin" 1 >"$work/got"
same "$work/want" "$work/got"
mkdir "$work/samples"
cp "$cloud" "$work/samples/token.bin"
infer 0 "$work/samples/*.bin" "$work/lidarseg" --format lidarseg --classification nuscenes -q
same "$work/a_lidarseg.bin" "$work/lidarseg/token_lidarseg.bin"
run 0 register "$work/000000.txt" "$work/000000.txt" --from "$work/identity.txt" -o "$work/sweep.csv" -q
sed -n '1s/$/,ring/p; 2,$s/$/,3/p' "$work/sweep.csv" >"$work/ring.csv"
mkdir "$work/sweeps"
run 0 register "$work/ring.csv" "$work/ring.csv" --from "$work/identity.txt" -o "$work/sweeps/token.pcd.bin" -q
infer 0 "$work/sweeps/*.bin" "$work/sweeps" --format lidarseg --classification nuscenes -q
same "$work/a_lidarseg.bin" "$work/sweeps/token_lidarseg.bin"

# ScanNet: a line a point, with --format alone; .txt is a cloud without it.
infer 0 "$cloud" "$work/scene0707_00.txt" --format scannet --classification 0=1,1=2,2=1163 -q
coded "1 2 1163 ${codes#10 11 15 }" <"$work/classes" >"$work/want"
same "$work/want" "$work/scene0707_00.txt"
infer 0 "$work/samples/*.bin" "$work/scenes" --format scannet -q
coded "$codes" <"$work/classes" >"$work/want"
same "$work/want" "$work/scenes/token.txt"
infer 0 "$cloud" "$work/cloud.labels.txt" -q
check "a text with columns" test "$(head -n 1 "$work/cloud.labels.txt")" = '# x y z intensity class score'

# Weights that know no labels: the numbers of the classes, or the order of a table.
plain() { echo "$1/last/weights.safetensors"; }
weights=$(plain "$work/run")
infer 0 "$cloud" "$work/plain.label" --map rgb=x,intensity,z
says 'the weights name no labels of files: the classes are written as their numbers, 0 to 11'
numbers "$work/plain.label" 4 >"$work/got"
same "$work/classes" "$work/got"
infer 2 "$cloud" "$work/none.label" --map rgb=x,intensity,z --classification semantickitti
says 'the model has 12 classes without names; SemanticKITTI has 19, or 20 with unlabeled as the first one'
order="10 11 15 18 20 30 31 32 40 44 48 49 50 51 70 71 72 80 81"
for count in 19 20; do
    names=$(seq -s ', ' 0 $((count - 1)) | sed 's/[0-9]*/c&/g')
    sed "s/^classes: .*/classes: [$names]/; /^map/,/^train/{/^train/!d}" "$work/kitti/dataset.yaml" |
        sed '/^train/i map_other: ignore' >"$work/kitti/$count.yaml"
    train kitti/$count.yaml "$work/run$count" 'inputs: {cloud: {rgb: [x, intensity, z]}}' "set: {classes: $count}"
    weights=$(plain "$work/run$count")
    infer 0 "$cloud" "$work/$count.npy" --map rgb=x,intensity,z --set classes=$count -q
    infer 0 "$cloud" "$work/$count.label" --map rgb=x,intensity,z --set classes=$count --classification semantickitti
    best "$work/$count.npy" $count | coded "$([ $count = 19 ] || echo 0) $order" >"$work/want"
    numbers "$work/$count.label" 4 >"$work/got"
    same "$work/want" "$work/got"
done
unset weights

# What does not fit is refused before a cloud is read.
echo nothing >"$work/broken.ply"
none() { # NAME MESSAGE OPTIONS..
    infer 2 "$work/broken.ply" "$work/$1" "${@:3}" -q
    says "$2"
}
none none_lidarseg.bin 'a label of this file is a number from 0 to 255' --classification car=256
none none.label 'a label of this file is a number from 0 to 65535' --classification car=65536
none none.label 'a label of this file is a number' --classification car=ground
none none.ply 'a code is a number from 0 to 255' --classification car=256
none none.ply 'none.ply: names of --format scannet end in .txt' --format scannet
none none.bin 'none.bin: names of --format lidarseg end in _lidarseg.bin' --format lidarseg
none none.bin 'the records of a .bin have no room for results'
none none.label 'the result is no class for each point, as labels are: write .ply or .npy' --value tiny.d.relu
infer 2 "$velodyne/*.bin" "$work/none.label" -q
says 'none.label: the results of a folder, a pattern or several clouds go to a folder'
sed 's/^map: .*/map: {300: car, 11: bicycle, 15: motorcycle, 18: truck, 20: other-vehicle, 30: person, 31: bicyclist,/; s/253/-5/
    s/^train/map_other: ignore\n&/' "$work/kitti/dataset.yaml" >"$work/kitti/large.yaml"
train kitti/large.yaml "$work/large" 'inputs: {cloud: {rgb: [x, intensity, z]}}'
weights=$work/large none none_lidarseg.bin 'the label of class car is 300, and --format lidarseg has labels from 0 to 255'
weights=$work/large none none.label 'the label of class bicyclist is -5, and --format label has labels from 0 to 65535'
weights=$work/large infer 0 "$cloud" "$work/large_lidarseg.bin" --classification car=1,bicyclist=31 -q
coded "1 ${codes#10 }" < <(weights=$work/large infer 0 "$cloud" "$work/large.npy" -q; best "$work/large.npy" 12) >"$work/want"
numbers "$work/large_lidarseg.bin" 1 >"$work/got"
same "$work/want" "$work/got"
check "nothing is left" test -z "$(find "$work" -name 'none*')"
finish
