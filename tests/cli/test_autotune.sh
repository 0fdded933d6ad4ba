# --autotune: what it chooses trains, evaluates and infers the same bits as --algo with that name, is kept by the run and gone
# on with, and no file of an earlier time can do harm. The cache stands in for the clock: what is in it is what was fastest.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
rooms=$work/rooms
cloud=$rooms/test/000007.ply
export XDG_CACHE_HOME=$work/cache
run 0 data synth rooms -o "$rooms" --count 8 --points 1200 --seed 3 -j 1
printf 'data: rooms\nsteps: 4\nbatch_size: 2\nlr: 0.01\nschedule: constant\nsave_every: {steps: 2}\neval_every: 0\n' >"$work/run.yaml"

train() { # FOLDER OPTIONS...
    local folder=$work/$1
    shift
    run 0 train $model --config "$work/run.yaml" -o "$folder" -j 1 "$@"
}

# fastest ALGO [DIRECTION]: makes the cache say so.
fastest() { sed -i -E "/\"${2:-}/s/algo: [a-z0-9-]+/algo: $1/" "$work"/cache/pnet/autotune-*.yaml; }

same_weights() { # A B
    for f in weights optimizer; do same "$work/$1/last/$f.safetensors" "$work/$2/last/$f.safetensors"; done
}

# The first time it measures, and writes what it found.
train first --autotune
says "11 sums of 4 convolutions: 11 measured"
check "choices in the folder of the run" grep -q '"tiny.b.conv": {forward: ' "$work/first/kernels.yaml"
check "choices in the checkpoint" grep -q 'tiny.b.conv' "$work/first/last/state.json"
check "eleven sums in the cache" test "$(grep -c default_ms "$work"/cache/pnet/autotune-*.yaml)" = 11
run 0 info "$work/first"
prints '  "tiny.b.conv": {forward: '

# The second time it knows, and chooses the same.
train again --autotune
says ": 0 measured in "
says " 11 known"
same "$work/first/kernels.yaml" "$work/again/kernels.yaml"
same_weights first again

# One algorithm for all is what --algo with its name is; the run says what it took without being asked again.
for algo in default im2col mvmr-i; do
    fastest $algo
    train "$algo.tuned" --autotune -q
    train "$algo" --algo $algo -q
    same_weights "$algo.tuned" $algo
    run 0 eval $model --weights "$work/$algo.tuned" --config "$work/run.yaml" --json
    loss=$(number loss "$out")
    run 0 eval $model --weights "$work/$algo.tuned" --config "$work/run.yaml" --algo $algo --json
    check "$algo: loss $loss, not $(number loss "$out")" test -n "$loss" -a "$loss" = "$(number loss "$out")"
    run 0 infer $model --weights "$work/$algo.tuned" --input "$cloud" -o "$work/$algo.npy" -q
    run 0 infer $model --weights "$work/$algo.tuned" --input "$cloud" -o "$work/told.npy" --algo $algo -q
    same "$work/$algo.npy" "$work/told.npy"
done
check "no choices to keep for the fixed table" test ! -e "$work/default/kernels.yaml"
run 0 infer $model --weights "$work/im2col.tuned" --input "$cloud" -o "$work/told.npy" --algo default -q
differ "--algo does not come before the choices" "$work/im2col.npy" "$work/told.npy"
run 0 plan $model --input "$cloud" --train
check "the plan knows of the workspace" grep -q workspace "$out"

# Each sum by itself: only dW is formed otherwise, so inference is the default's.
fastest default
fastest im2col dW
train mixed --autotune
says "tiny.b.conv"
says "dW im2col"
check "dW alone" grep -q '{forward: default, dF: default, dW: im2col}' "$work/mixed/kernels.yaml"
differ "dW has no part in the weights" "$work/mixed/last/weights.safetensors" "$work/default/last/weights.safetensors"
run 0 infer $model --weights "$work/mixed" --input "$cloud" -o "$work/mixed.npy" -q
run 0 infer $model --weights "$work/mixed" --input "$cloud" -o "$work/told.npy" --algo default -q
same "$work/mixed.npy" "$work/told.npy"

# A run goes on with what it has, whatever is fastest by now: from a checkpoint, and from its folder where there is none yet.
fastest mvmr-i
train parts --autotune --steps 2 -q
fastest im2col
train parts --resume --autotune
says "a resumed run keeps its algorithms"
same_weights mvmr-i parts
rm -r "$work/parts/last" "$work/parts/best"
train parts --resume --autotune -q
same_weights mvmr-i parts
train parts.algo --algo mvmr-i --steps 2 -q
train parts.algo --resume -q
same_weights mvmr-i parts.algo
train plain --steps 2 -q
train plain --resume --autotune -q
same_weights default plain
check "a run by the fixed table stays one" test ! -e "$work/plain/kernels.yaml"

# Too little time leaves the rest to the fixed table, and is not remembered.
rm -r "$work/cache"
train short --autotune=0.000001
says "11 left to the fixed table"
same_weights default short
check "nothing to remember" test ! -e "$work/cache"

# A budget that the training just keeps to is enough to measure in.
train counted --json
peak=$(number peak_bytes "$out")
train tight --memory "$peak" --autotune
says "11 measured"
check "a peak of $peak bytes" test "${peak:-0}" -gt 1000
fastest im2col
train roomy --autotune --json
more=$(number peak_bytes "$out")
check "im2col needs more" test "$more" -gt "$peak"
# neither one that the first batch would break, nor one that a later batch might
for budget in "$peak" $((more - 1)); do
    train tight.im2col --memory "$budget" --autotune
    says "larger workspace"
    same_weights default tight.im2col
    rm -r "$work/tight.im2col"
done
rm -r "$work/cache"

# Files that are damaged or of something else are told and left alone; what is found anew replaces them.
train cached --autotune -q
file=$(echo "$work"/cache/pnet/autotune-*.yaml)
cp "$file" "$work/good.yaml"
damage() { # WHAT COMMAND...: writes a damaged file from good.yaml
    local what=$1
    shift
    "$@" <"$work/good.yaml" >"$file"
    train damaged."$passed" --autotune
    says "ignored"
    says "11 measured"
    check "$what: written anew" grep -q default_ms "$file"
}
damage "cut short" head -c 300
damage "no YAML" sed 's/format: 1/format: [1/'
damage "another format" sed 's/format: 1/format: 2/'
damage "another device" sed -E 's/^name: .*/name: "Z80"/'
damage "another driver" sed -E 's/^driver: .*/driver: "9.9"/'
damage "another version" sed -E 's/^version: .*/version: "0.0.1"/'
damage "another algorithm" sed 's/algo: [a-z0-9-]*/algo: winograd/'
damage "no number" sed 's/ ms: [0-9.]*/ ms: fast/'
damage "bytes" head -c 4000 /dev/urandom
: >"$file"
train empty --autotune
says "ignored"
mkdir "$work/file"
: >"$work/file/pnet"
XDG_CACHE_HOME=$work/file train nowhere --autotune
says "11 measured"
says "not kept for other runs"
XDG_CACHE_HOME='' HOME='' train homeless --autotune
says "11 measured"

# Choices in a checkpoint that cannot be read, or are for another device.
cp -r "$work/im2col.tuned" "$work/torn"
# without its checksum, as format 1 had none
sed -i 's/"format":2/"format":1/; s/,"state_crc32".*/}/; s/im2col/winograd/' "$work"/torn/*/state.json
run 0 infer $model --weights "$work/torn" --input "$cloud" -o "$work/torn.npy" -q
says "ignored"
run 0 infer $model --weights "$work/torn" --input "$cloud" -o "$work/told.npy" --algo default -q
same "$work/torn.npy" "$work/told.npy"
sed -i 's/winograd/im2col/; s/device: cpu/device: cuda/' "$work"/torn/*/state.json
run 0 infer $model --weights "$work/torn" --input "$cloud" -o "$work/torn.npy" -q
same "$work/torn.npy" "$work/told.npy"
train torn --resume --steps 6
says "another device"

run 0 compare $model --config "$work/run.yaml" -o "$work/compare" --autotune -j 1
check "both variants were tuned" test -e "$work/compare/native/kernels.yaml" -a -e "$work/compare/voxel/kernels.yaml"
run 2 train $model --config "$work/run.yaml" -o "$work/none" --autotune=soon
says "takes a number of seconds, not 'soon'"
run 2 train $model --config "$work/run.yaml" -o "$work/none" --autotune=0
run 2 train $model --config "$work/run.yaml" -o "$work/none" --autotune --algo im2col
says "give one of them"
nothing_left "$work/none"
finish
