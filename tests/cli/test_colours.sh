# What the colours of a source are divided by, from end to end: decided over a data set and over the files of infer, recorded
# with the training, followed by infer and eval, told where a cloud alone would decide otherwise; ranges of other features.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
mkdir "$work/set" "$work/bytes"

# cloud TYPE LARGEST FORMAT: an ascii PLY of 64 coloured points with a label; the colours reach LARGEST.
cloud() {
    printf 'ply\nformat ascii 1.0\nelement vertex 64\nproperty float x\nproperty float y\nproperty float z\n'
    printf "property $1 %s\n" red green blue
    printf 'property uchar label\nend_header\n'
    awk -v most="$2" -v form="$3" 'BEGIN {
        for (i = 0; i < 64; i++)
            printf "%g %g %g " form " " form " " form " %d\n", i % 8 / 4, int(i / 8) / 4, 0,
                most * (i * 37 % 64) / 63, most * (i * 11 % 64) / 63, most * (i * 5 % 64) / 63, i % 12 }'
}
head_of() { printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c, d, e, f, g, h, i, j, k, l]\n'; }
cloud ushort 65520 %.0f >"$work/set/bright.ply"
cloud ushort 252 %.0f >"$work/set/dark.ply"
{
    head_of
    echo 'train: [bright.ply, dark.ply]'
} >"$work/set/dataset.yaml"
printf 'steps: 2\nbatch_size: 1\neval_every: 0\ndata: set\n' >"$work/set.yaml"

# A training decides over its set, says what a cloud alone would get, and records it.
run 0 train $model --config "$work/set.yaml" -o "$work/words" -q -j 1
says 'dark.ply: the colours reach 252 and alone would be divided by 255; they are divided by 65535, as others of their source'
run 0 info "$work/words"
prints 'rgb: integers up to 65520, divided by 65535'
run 0 info --json "$work/words"
prints '"ranges":[{"field":"rgb","type":"integer","from":0,"to":65520,"divisor":65535}]'
valid_json "$out"
run 0 data info "$work/set"
prints 'colours: integers up to 65520, divided by 65535'
says 'dark.ply alone would be divided by 255; as others of the source reach 65520, all are divided by 65535'
run 0 info "$work/set/dark.ply"
prints 'colours: integers up to 252, divided by 255'
run 0 info --json "$work/set/dark.ply"
prints '"colours":[{"field":"rgb","type":"integer","from":0,"to":252,"divisor":255}]'
valid_json "$out"
check "the result is kept" grep -q 'divisor: 65535' "$work/cache/pnet"/ranges-*.yaml

infer() { # weights, cloud, output, options
    local from=$1 of=$2 to=$3
    shift 3
    run 0 infer $model --weights "$from" --input "$of" -o "$to" -q "$@"
}
# A dark cloud alone gets what it got in the training, in every way to name its columns.
infer "$work/words" "$work/set/dark.ply" "$work/dark.npy"
says 'dark.ply: the colours reach 252 and alone would be divided by 255; they are divided by 65535, as others of their source or of the training'
infer "$work/words" "$work/set/dark.ply" "$work/told.npy" --map 'rgb=red,green,blue*1/65535'
check "no notice about a scale that is given" test ! -s "$err"
same "$work/dark.npy" "$work/told.npy"
infer "$work/words" "$work/set/dark.ply" "$work/mapped.npy" --map rgb=red,green,blue
same "$work/dark.npy" "$work/mapped.npy"
run 0 eval $model --weights "$work/words" --config "$work/set.yaml" --data "$work/set" --split train -q
says 'dark.ply: the colours reach 252 and alone would be divided by 255'

# All variants of a comparison decide alike, which is told once.
cloud ushort 252 %.0f >"$work/dim.ply"
{
    head_of
    echo 'train: [dim.ply]'
} >"$work/dim.yaml"
printf 'steps: 1\nbatch_size: 1\neval_every: 0\ndata: dim.yaml\n' >"$work/dim.run.yaml"
run 0 train $model --config "$work/dim.run.yaml" -o "$work/dim" -q -j 1
run 0 compare $model --weights "$work/dim" --config "$work/set.yaml" --split train --all -q
says 'the colours reach 65520 and are divided by 65535, those of the training by 255'
check 'told once' test "$(grep -c 'those of the training by 255' "$err")" = 1

# Without a record the files of one command decide together.
weights=$work/words/last/weights.safetensors
infer "$weights" "$work/set/dark.ply" "$work/alone.npy"
infer "$weights" "$work/set/dark.ply" "$work/by255.npy" --map 'rgb=red,green,blue*1/255'
same "$work/alone.npy" "$work/by255.npy"
differ "the record matters" "$work/alone.npy" "$work/dark.npy"
infer "$weights" "$work/set" "$work/both" --format npy
says 'dark.ply: the colours reach 252 and alone would be divided by 255'
same "$work/both/dark.npy" "$work/dark.npy"
# A pipe among them is read once, and follows the others.
if [ -e /dev/stdin ]; then
    code=0
    "$pnetc" infer $model --weights "$weights" --input "$work/set/bright.ply" --input - -o "$work/piped" --format npy -q \
        <"$work/set/dark.ply" >"$out" 2>"$err" || code=$?
    check "a pipe among several: exit code $code" test "$code" = 0
    same "$work/piped/-.npy" "$work/dark.npy"
fi

# 16 bits that hold 0..255, 32 bits, real numbers and text: the same as bytes, bit by bit.
cloud uchar 252 %.0f >"$work/bytes/a.ply"
{
    head_of
    echo 'train: [a.ply]'
} >"$work/bytes/dataset.yaml"
run 0 train $model --config "$work/set.yaml" --data "$work/bytes" -o "$work/eight" -q -j 1
check "bytes need no look: $(cat "$err")" test ! -s "$err"
infer "$work/eight" "$work/bytes/a.ply" "$work/want.npy"
for type in ushort short int uint float double; do
    cloud $type 252 %.0f >"$work/other.ply"
    infer "$work/eight" "$work/other.ply" "$work/got.npy"
    same "$work/want.npy" "$work/got.npy"
done
sed '1,/^end_header/d' "$work/bytes/a.ply" >"$work/bare.txt"
infer "$work/eight" "$work/bare.txt" "$work/got.npy" --columns x,y,z,red,green,blue
same "$work/want.npy" "$work/got.npy"
infer "$work/eight" "$work/bare.txt" "$work/got.npy" --columns x,y,z,R,G,B --map rgb=R,G,B
same "$work/want.npy" "$work/got.npy"
{
    echo 'x y z r g b label'
    cat "$work/bare.txt"
} >"$work/named.txt"
infer "$work/eight" "$work/named.txt" "$work/got.npy"
same "$work/want.npy" "$work/got.npy"
# A constant of the training's config does not stay as a shift where columns replace it.
infer "$work/eight" "$work/bytes/a.ply" "$work/got.npy" --map rgb=0.5 --map rgb=red,green,blue
same "$work/want.npy" "$work/got.npy"
# Real numbers slightly beyond 1: neither shares of 1 nor bytes.
cloud float 1.5 %.5f >"$work/odd.ply"
run 4 infer $model --weights "$work/eight" --input "$work/odd.ply" -o "$work/none.npy" -q
says 'the colour red is 1.5, the largest of its source'
infer "$work/eight" "$work/odd.ply" "$work/odd.npy" --map 'rgb=red,green,blue*0.5'

# A run whose data set has changed beyond its scale does not resume.
cloud int 252 %.0f >"$work/bytes/a.ply"
run 0 train $model --config "$work/set.yaml" --data "$work/bytes" -o "$work/grows" -q -j 1
cloud int 65000 %.0f >"$work/bytes/a.ply"
run 2 train $model --config "$work/set.yaml" --data "$work/bytes" -o "$work/grows" -q -j 1 --steps 4 --resume
says 'would be divided by 65535, but those of the run by 255: the data set has changed'
cloud int 100 %.0f >"$work/bytes/a.ply"
run 0 train $model --config "$work/set.yaml" --data "$work/bytes" -o "$work/grows" -q -j 1 --steps 4 --resume
run 0 info "$work/grows"
prints 'rgb: integers up to 100, divided by 255'

# The two clouds of register are one source; the colours of a training on pairs are recorded too.
mkdir "$work/pair"
sed 's/{ xyz : position }/{ xyz : position\n rgb : feature[3] }/; s/ones(g\[0\])/p.rgb -> pool(mean, to=g[0])/' tests/register/pair.pnet >"$work/pair.pnet"
cloud uchar 252 %.0f >"$work/pair/a.ply"
cloud ushort 252 %.0f >"$work/pair/b.ply"
printf 'pnet_dataset: 1\ntask: registration\ntrain: [{source: a.ply, target: b.ply, pose: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}]\n' >"$work/pair/dataset.yaml"
run 0 train "$work/pair.pnet" --config "$work/set.yaml" --data "$work/pair" -o "$work/pairs" -q -j 1
run 0 info "$work/pairs"
prints 'rgb: uint8, divided by 255'
prints 'rgb: integers up to 252, divided by 255'
pose() { run 0 register "$1" "$2" --model "$work/pair.pnet" --weights "$3" --json -q -j 1 && sed 's/"source":[^,]*,"target":[^,]*,//' "$out" >"$4"; }
pose "$work/pair/a.ply" "$work/pair/a.ply" "$work/pairs" "$work/bytes.pose"
pose "$work/pair/a.ply" "$work/pair/b.ply" "$work/pairs" "$work/words.pose"
same "$work/bytes.pose" "$work/words.pose"
# such a pair has hardly any features, so a pose may not be found
"$pnetc" register "$work/set/bright.ply" "$work/set/dark.ply" --model "$work/pair.pnet" --weights "$work/pairs/last/weights.safetensors" -q -j 1 >"$out" 2>"$err" || true
says 'dark.ply: the colours reach 252 and alone would be divided by 255; they are divided by 65535'

# Other features: the range of the training is recorded, and a cloud outside of it is told.
mkdir "$work/heat"
sed 's/rgb   : feature\[3\]/intensity : feature[1]/; s/p\.rgb/p.intensity/' $model >"$work/heat.pnet"
hot() { awk -v most="$1" 'BEGIN { print "x,y,z,intensity,label"; for (i = 0; i < 64; i++) printf "%g,%g,0,%g,%d\n", i % 8 / 4, int(i / 8) / 4, most * (i * 37 % 64) / 63, i % 12 }'; }
for most in 1 255 65535; do hot $most >"$work/heat/$most.csv"; done
{
    head_of
    printf 'train: [1.csv]\nval: [1.csv]\ntest: [255.csv]\n'
} >"$work/heat/dataset.yaml"
run 0 train "$work/heat.pnet" --config "$work/set.yaml" --data "$work/heat" -o "$work/unit" -q -j 1
run 0 train "$work/heat.pnet" --config "$work/set.yaml" --data "$work/heat" -o "$work/unit2" -q -j 1
same "$work/unit/last/weights.safetensors" "$work/unit2/last/weights.safetensors"
run 0 info "$work/unit"
prints 'intensity: from 0 to 1'
warm() { run 0 infer "$work/heat.pnet" --weights "$work/$1" --input "$work/heat/$2.csv" -o "$work/heat.npy" -q; }
warm unit 1
check "inside: nothing is told" test ! -s "$err"
warm unit 255
says '255.csv: intensity reaches from 0 to 255, in the training from 0 to 1'
run 0 eval "$work/heat.pnet" --weights "$work/unit" --config "$work/set.yaml" --data "$work/heat" --split test -q
says '255.csv: intensity reaches from 0 to 255, in the training from 0 to 1'
run 0 eval "$work/heat.pnet" --weights "$work/unit" --config "$work/set.yaml" --data "$work/heat" --split val -q
check "inside: nothing is told" test ! -s "$err"
sed 's/\[1.csv\]/[65535.csv]/g' "$work/heat/dataset.yaml" >"$work/heat/wide.yaml"
run 0 train "$work/heat.pnet" --config "$work/set.yaml" --data "$work/heat/wide.yaml" -o "$work/wide" -q -j 1
warm wide 1
says '1.csv: intensity reaches from 0 to 1, in the training from 0 to 65535'
warm wide 255
says 'in the training from 0 to 65535'
warm wide 65535
check "inside: nothing is told" test ! -s "$err"

# A number that is not finite names what can be done, and that works.
sed '5s/,[^,]*,\([0-9]*\)$/,nan,\1/' "$work/heat/1.csv" >"$work/gap.csv"
run 4 infer "$work/heat.pnet" --weights "$work/unit" --input "$work/gap.csv" -o "$work/none.npy" -q
says 'row 3: intensity is not finite'
says 'inputs: {cloud: {intensity: {field: intensity, missing: 0}}}'
printf 'data: nowhere\ninputs: {cloud: {intensity: {field: intensity, missing: 0}}}\n' >"$work/missing.yaml"
run 0 infer "$work/heat.pnet" --weights "$work/unit" --input "$work/gap.csv" -o "$work/gap.npy" -q --config "$work/missing.yaml"
sed '5s/,[^,]*,\([0-9]*\)$/,0,\1/' "$work/heat/1.csv" >"$work/zero.csv"
run 0 infer "$work/heat.pnet" --weights "$work/unit" --input "$work/zero.csv" -o "$work/zero.npy" -q
same "$work/zero.npy" "$work/gap.npy"
finish
