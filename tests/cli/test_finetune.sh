# Fine-tuning: what a training starts from, what of it is frozen, and how fast the rest learns.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 8 --points 1000 --seed 6 -j 1
cat >"$work/run.yaml" <<END
data: rooms
steps: 4
batch_size: 2
lr: 0.01
eval_every: 0
END
run 0 train $model --config "$work/run.yaml" -o "$work/base" -q
base=$work/base/last/weights.safetensors
train() { # FOLDER OPTIONS...: a training of its own, from a file
    local to=$work/$1
    shift
    run 0 train $model --config "$work/run.yaml" -o "$to" --seed 9 "$@"
}
# tensor FILE NAME: its bytes, by the offsets in the header.
tensor() {
    python3 -c '
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
begin, end = json.loads(b[8:8 + n])[sys.argv[2]]["data_offsets"]
sys.stdout.buffer.write(b[8 + n + begin:8 + n + end])' "$1" "$2"
}
# equal FILE FILE NAME...: these tensors are the same; unequal: each differs.
equal() {
    local a=$1 b=$2 name
    shift 2
    for name in "$@"; do check "$name is equal" cmp -s <(tensor "$a" "$name") <(tensor "$b" "$name"); done
}
unequal() {
    local a=$1 b=$2 name
    shift 2
    for name in "$@"; do
        if cmp -s <(tensor "$a" "$name") <(tensor "$b" "$name"); then fail "$name is equal"; else pass; fi
    done
}
needs python3
names=$("$pnetc" info "$base" | grep -oE '^  tiny\.[^ ]*')
conv=$(grep -m 1 'conv.weight$' <<<"$names" | tr -d ' ')
layer=${conv%.conv.weight}
norm=$(grep -m 1 'running_mean$' <<<"$names" | tr -d ' ')
norm=${norm%.running_mean}
total=$(wc -l <<<"$names")
still='--set-config rates={"*":1e-30}' # hardly moves: what is loaded can be seen

# All of it: a run folder, a checkpoint, a file.
for weights in "$work/base" "$work/base/last" "$base"; do
    rm -rf "$work/all"
    # shellcheck disable=SC2086
    train all --weights "$weights" --steps 1 $still
    says "loaded $total of the model's $total tensors"
    check "only that is told" hides -q 'not there' "$err"
    equal "$base" "$work/all/last/weights.safetensors" "$conv" "$norm.weight"
done
# the config that is kept starts from there too, and going on does not load again
check "weights in the config" grep -qF "weights: $(realpath "$base")" "$work/all/config.yaml"
train more --weights "$base" -q
run 0 train $model --config "$work/more/config.yaml" -o "$work/again" -q
same "$work/more/last/weights.safetensors" "$work/again/last/weights.safetensors"
train parts --weights "$base" -q --steps 2
mv "$base" "$base.away"
run 0 train $model --config "$work/parts/config.yaml" -o "$work/parts" -q --resume --steps 4
mv "$base.away" "$base"
same "$work/more/last/weights.safetensors" "$work/parts/last/weights.safetensors"
train fresh -q
differ "the weights do nothing" "$work/more/last/weights.safetensors" "$work/fresh/last/weights.safetensors"

# Other names, and other shapes: what does not fit is listed and begins anew.
sed 's/net tiny/net other/; s/tiny(/other(/g' $model >"$work/other.pnet"
run 0 train "$work/other.pnet" --config "$work/run.yaml" -o "$work/mapped" --weights "$base" --steps 1 --set-config 'weights_map={tiny: other}' \
    --set-config 'rates={other: 1e-30}'
says "loaded $total of the model's $total tensors"
run 0 train "$work/other.pnet" --config "$work/run.yaml" -o "$work/globbed" --weights "$base" --steps 1 --set-config 'weights_map={"tiny.*": "other.*"}'
says "loaded $total of the model's $total tensors"
run 3 train "$work/other.pnet" --config "$work/run.yaml" -o "$work/none" --weights "$base" -q
says "weights_map may help"
check "nothing is left" test ! -e "$work/none"
run 2 train "$work/other.pnet" --config "$work/run.yaml" -o "$work/none" --weights "$base" -q --set-config "weights_map={$conv: x, ${conv%weight}bias: x, $norm.weight: x}"
run 0 train $model --config "$work/run.yaml" -o "$work/wide" --weights "$base" --steps 1 --set c=12
says "in the model"
loaded=$(grep -oE 'loaded [0-9]+' "$err" | grep -oE '[0-9]+')
listed=$(grep -cE '^  tiny.*(not there| in the model)$' "$err")
check "$loaded loaded and $listed listed of $total" test $((loaded + listed)) = "$total" -a "$loaded" -gt 0 -a "$listed" -gt 0
sed 's/-> bn -> relu/-> relu/' $model >"$work/plain.pnet"
run 0 train "$work/plain.pnet" --config "$work/run.yaml" -o "$work/plain" --weights "$base" --steps 1
says "$norm.running_mean: not in the model"
run 1 train $model --config "$work/run.yaml" -o "$work/none" --weights "$work/nowhere.safetensors" -q
says "nowhere.safetensors"
head -c 300 "$base" >"$work/torn.safetensors"
run 4 train $model --config "$work/run.yaml" -o "$work/none" --weights "$work/torn.safetensors" -q
check "nothing is left" test ! -e "$work/none"
run 0 train $model --config "$work/run.yaml" -o "$work/voxel" --weights "$base" -q --mode voxel --steps 1
says "was trained in mode native; this training is in mode voxel"

# Frozen: not changed, statistics of norms included; the rest is trained.
others=$(grep -v -F "$layer" <<<"$names" | grep -m 1 'conv.weight$' | tr -d ' ')
train frozen --weights "$base" -q --set-config "freeze=[$layer]"
equal "$base" "$work/frozen/last/weights.safetensors" $(grep -F "$layer." <<<"$names")
unequal "$base" "$work/frozen/last/weights.safetensors" "$others"
train norms --weights "$base" -q --set-config 'freeze=["*.bn.*"]'
equal "$base" "$work/norms/last/weights.safetensors" $(grep -F '.bn.' <<<"$names")
unequal "$base" "$work/norms/last/weights.safetensors" "$conv"
train half --weights "$base" -q --set-config "freeze=[$norm.weight]"
equal "$base" "$work/half/last/weights.safetensors" "$norm.weight"
unequal "$base" "$work/half/last/weights.safetensors" "$norm.running_mean" "$norm.bias"
# gone on with it is the same as in one piece
train pieces --weights "$base" -q --steps 2 --set-config "freeze=[$layer]"
run 0 train $model --config "$work/pieces/config.yaml" -o "$work/pieces" --steps 4 -q --resume
same "$work/pieces/last/weights.safetensors" "$work/frozen/last/weights.safetensors"
run 2 train $model --config "$work/run.yaml" -o "$work/none" -q --set-config 'freeze=[tiny]'
says "nothing is left to be trained"
run 2 train $model --config "$work/run.yaml" -o "$work/none" -q --set-config 'freeze=[tinny.a]'
says "no weight named 'tinny.a'"
run 2 train $model --config "$work/run.yaml" -o "$work/none" -q --set-config 'rates={tiny.zzz: 2}'
run 2 train $model --config "$work/run.yaml" -o "$work/none" -q --set-config 'rates={tiny: fast}'
check "nothing is left" test ! -e "$work/none"

# Rates: a factor for all layers is another learning rate; the first pattern that fits counts.
train slow --weights "$base" -q --set-config lr=0.0025 --set-config weight_decay=0
train factor --weights "$base" -q --set-config 'rates={tiny: 0.25}' --set-config weight_decay=0
equal "$work/slow/last/weights.safetensors" "$work/factor/last/weights.safetensors" $(grep 'weight$' <<<"$names")
train one --weights "$base" -q --set-config "rates={$layer: 1e-30, tiny: 1}"
equal "$base" "$work/one/last/weights.safetensors" "$conv"
unequal "$base" "$work/one/last/weights.safetensors" "$others"

# Weights that went wrong are named at once, and nothing is begun.
python3 -c '
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
b[-4:] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(b)' "$base" "$work/wrong.safetensors"
run 4 train $model --config "$work/run.yaml" -o "$work/wrong" --weights "$work/wrong.safetensors" -q
says 'are not finite: the training diverged'
check "no folder is left" test ! -e "$work/wrong"
finish
