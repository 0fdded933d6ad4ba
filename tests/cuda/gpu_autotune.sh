# --autotune on a GPU: candidates are timed there, and what was chosen trains, in recorded schedules, and infers the same bits as
# --algo with its name. Skipped where there is no GPU.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
export XDG_CACHE_HOME=$work/cache
"$pnetc" data synth rooms -o "$work/rooms" --count 8 --points 2000 --seed 5 >/dev/null 2>&1
cloud=$work/rooms/test/000007.ply
cat >"$work/run.yaml" <<END
data: rooms
steps: 8
batch_size: 3
lr: 0.002
schedule: constant
save_every: {steps: 4}
eval_every: {steps: 1000}
END

train() { # FOLDER OPTIONS...
    local folder=$work/$1
    shift
    run 0 train $model --config "$work/run.yaml" -o "$folder" --device cuda "$@"
}

got=0
"$pnetc" train $model --config "$work/run.yaml" -o "$work/first" --device cuda --autotune 2>"$err" >/dev/null || got=$?
if [ "$got" = 6 ]; then
    echo "skipped: $(cat "$err")"
    exit 77
fi
check "a training on the GPU: $(cat "$err")" test "$got" = 0
says "11 sums of 4 convolutions: 11 measured"
sed -n '/^autotune/,/^step/p' "$err"
check "choices for this device" grep -q '^device: cuda' "$work/first/kernels.yaml"
check "no atomics" hides -qE 'mvmr|gather' "$work/first/kernels.yaml"

# What is known is what was measured, and a run goes on with it.
train again --autotune
says "0 measured"
same "$work/first/kernels.yaml" "$work/again/kernels.yaml"
for f in weights optimizer; do same "$work/first/last/$f.safetensors" "$work/again/last/$f.safetensors"; done
train parts --autotune --steps 4 -q

# The cache stands in for the clock.
fastest() { sed -i -E "s/algo: [a-z0-9-]+/algo: $1/" "$work"/cache/pnet/autotune-*.yaml; }
for algo in default im2col implicit-gemm; do
    fastest $algo
    train $algo.tuned --autotune -q
    train $algo --algo $algo -q
    same "$work/$algo.tuned/last/weights.safetensors" "$work/$algo/last/weights.safetensors"
    run 0 infer $model --weights "$work/$algo.tuned" --input "$cloud" -o "$work/$algo.npy" --device cuda -q
    run 0 infer $model --weights "$work/$algo.tuned" --input "$cloud" -o "$work/told.npy" --device cuda --algo $algo -q
    same "$work/$algo.npy" "$work/told.npy"
done
train parts --resume -q
for f in weights optimizer; do same "$work/first/last/$f.safetensors" "$work/parts/last/$f.safetensors"; done

# The choices of a GPU are none of the CPU's.
run 0 infer $model --weights "$work/im2col.tuned" --input "$cloud" -o "$work/cpu.npy" -q
run 0 infer $model --weights "$work/im2col.tuned" --input "$cloud" -o "$work/told.npy" --algo default -q
same "$work/cpu.npy" "$work/told.npy"

# 16 bits have fewer algorithms; all of them may take part where the user says so.
train bf16 --autotune --precision bf16
says "11 measured"
sed -n '/^autotune/,/^step/p' "$err"
check "the precision" grep -q '^precision: bf16' "$work/bf16/kernels.yaml"
train all --autotune-all
says "11 measured"
sed -n '/^autotune/,/^step/p' "$err"
finish
