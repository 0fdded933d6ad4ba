# infer on clouds that differ from those of the training: other names of fields, none, folders and patterns.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 600 --seed 2 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
infer() { # exit code, cloud, output, options
    local want=$1 cloud=$2 to=$3
    shift 3
    run "$want" infer $model --weights "$work/run" --input "$cloud" -o "$to" -q "$@"
}
whole=$work/rooms/test/000009.ply
infer 0 "$whole" "$work/whole.npy"

# The same cloud with other names, in which nothing finds its colours but --map or a run config.
LC_ALL=C sed 's/^property uchar red/property uchar aaa/; s/^property uchar green/property uchar bb/; s/^property uchar blue/property uchar c/' \
    "$whole" >"$work/named.ply"
infer 4 "$work/named.ply" "$work/none.npy"
says '--map rgb=a,b,..'
check "nothing is left" test ! -e "$work/none.npy"
infer 0 "$work/named.ply" "$work/mapped.npy" --map rgb=aaa,bb,c
same "$work/whole.npy" "$work/mapped.npy"
infer 0 "$work/named.ply" "$work/full.npy" --map cloud.rgb=aaa,bb,c
same "$work/whole.npy" "$work/full.npy"
printf 'data: nowhere\ninputs: {cloud: {rgb: {field: [aaa, bb, c], scale: 1/255}}}\n' >"$work/other.yaml"
infer 0 "$work/named.ply" "$work/config.npy" --config "$work/other.yaml"
same "$work/whole.npy" "$work/config.npy"
infer 0 "$work/named.ply" "$work/one.npy" --map rgb=aaa
infer 0 "$work/named.ply" "$work/three.npy" --map rgb=aaa,aaa,aaa
same "$work/one.npy" "$work/three.npy"
differ "other colours, other scores" "$work/whole.npy" "$work/one.npy"

# Clouds without colours: a constant.
awk 'BEGIN { for (i = 0; i < 40; i++) print i % 7 / 4, int(i / 7) / 4, 0.5 }' >"$work/plain.xyz"
infer 4 "$work/plain.xyz" "$work/none.npy"
infer 0 "$work/plain.xyz" "$work/half.npy" --map rgb=0.5
awk '{ print $0, 0.5, 0.5, 0.5 }' "$work/plain.xyz" >"$work/grey.xyz"
infer 0 "$work/grey.xyz" "$work/grey.npy" --map rgb=c3,c4,c5
same "$work/half.npy" "$work/grey.npy"

# Columns that a data set names are for columns without names, and not for clouds that have no fields.
mkdir "$work/text"
awk 'BEGIN { for (i = 0; i < 60; i++) print i % 7 / 4, int(i / 7) / 4, 0, i % 255, 20, 30, i % 12 }' | tee "$work/text/a.txt" >"$work/text/b.txt"
cat >"$work/text/dataset.yaml" <<END
pnet_dataset: 1
task: segmentation
classes: [a, b, c, d, e, f, g, h, i, j, k, l]
columns: [x, y, z, red, green, blue, label]
label_field: label
train: [a.txt, b.txt]
END
printf 'data: text\nsteps: 1\neval_every: 0\ninputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255}}}\n' >"$work/text.yaml"
run 0 train $model --config "$work/text.yaml" -o "$work/columns" -q -j 1
cut -d ' ' -f 1-6 "$work/text/a.txt" >"$work/six.txt"
on() { run "$1" infer $model --weights "$work/columns" --input "$2" -o "$3" -q "${@:4}"; }
on 0 "$work/text/a.txt" "$work/a.npy"
on 0 "$whole" "$work/w.npy"
printf 'OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n' >"$work/bare.off"
on 0 "$work/bare.off" "$work/bare.npy" --map rgb=0.5
on 4 "$work/bare.off" "$work/none.npy"
says 'has no red for cloud.rgb'
head -c 1600 /dev/zero >"$work/scan.bin"
on 4 "$work/scan.bin" "$work/none.npy" --map rgb=intensity
says 'columns names those of this file'
on 0 "$work/scan.bin" "$work/scan.npy" --columns x,y,z,intensity --map rgb=intensity

# Records of four columns, read with the seven names that the weights have: other points come out, and that is said.
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
run 0 register "$whole" "$whole" --from "$work/identity.txt" -o "$work/four.bin"
head -c $((7 * 4 * 4 * 40)) "$work/four.bin" >"$work/some.bin"
on 0 "$work/some.bin" "$work/some.npy"
says 'some.bin: looks like 4 numbers a point, but 7 columns are named: --columns names its own'
on 0 "$work/some.bin" "$work/some.npy" --columns x,y,z,intensity --map rgb=intensity
check 'a word too many' test "$(grep -c 'looks like' "$err")" = 0

# Folders and patterns, with a file in them that is no cloud.
cp "$work/named.ply" "$work/text.yaml" "$work/rooms/train"
run 0 infer $model --weights "$work/run" --input "$work/rooms/val" -o "$work/val" -q
check "one of a folder" test "$(ls "$work/val")" = 000008.ply
rm "$work/rooms/train/named.ply"
run 0 infer $model --weights "$work/run" --input "$work/rooms/train" --input "$work/rooms/te*/*.ply" -o "$work/all" --format npy -q
check "all of them" test "$(ls "$work/all" | wc -l)" = 9
same "$work/whole.npy" "$work/all/000009.npy"
mkdir "$work/empty"
run 1 infer $model --weights "$work/run" --input "$work/empty" -o "$work/none" -q
says "$work/empty: no file in this folder"
run 4 infer $model --weights "$work/run" --input "$work/*.laz" -o "$work/none" -q
says 'no file is called'
run 2 infer $model --weights "$work/run" --input "$work/rooms/train" --input "$work/rooms/train/000001.ply" -o "$work/none" -q
says 'would both be written'
for output in "$work/none.ply" "$whole"; do
    run 2 infer $model --weights "$work/run" --input "$work/rooms/train" -o "$output" -q
    says "$output: the results of a folder, a pattern or several clouds go to a folder"
done
check "nothing is made" test ! -e "$work/none" -a ! -e "$work/none.ply"

# What does not fit.
for wrong in rgb rgb= =red rgb=a,b rgb=a,,b rgb=1e40; do infer 2 "$whole" "$work/none.npy" --map "$wrong"; done
infer 2 "$whole" "$work/none.npy" --map colour=red,green,blue
says 'it has cloud.rgb'
infer 4 "$whole" "$work/none.npy" --map rgb=red,green,blu
says 'has no blu for cloud.rgb'
finish
