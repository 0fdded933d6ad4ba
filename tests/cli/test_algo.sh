# --algo: every algorithm of a convolution trains, evaluates and infers what the default does, up to rounding.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
rooms=$work/rooms
run 0 data synth rooms -o "$rooms" --count 6 --points 1200 --seed 3 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\nlr: 0.01\n' >"$work/run.yaml"

# near A B: numbers that agree to five digits.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 1e-10 * a * a) }'; }

run 0 train $model --config "$work/run.yaml" -o "$work/default" -q -j 1
norm=$(number gradient_norm "$work/default/metrics.jsonl")
run 0 eval $model --weights "$work/default/last" --config "$work/run.yaml" --json
loss=$(number ce "$out")
check "a norm and a loss" test -n "$norm" -a -n "$loss"
for algo in default mvmr-k mvmr-i mvmr-j im2col gather-gemm-scatter implicit-gemm; do
    run 0 train $model --config "$work/run.yaml" -o "$work/$algo.run" --algo $algo -q -j 1
    got=$(number gradient_norm "$work/$algo.run/metrics.jsonl")
    check "$algo: gradient norm $got, not $norm" near "$norm" "$got"
    run 0 eval $model --weights "$work/default/last" --config "$work/run.yaml" --algo $algo --json
    check "$algo: loss $(number ce "$out"), not $loss" near "$loss" "$(number ce "$out")"
    run 0 infer $model --weights "$work/default/last" --input "$rooms/test/000005.ply" -o "$work/$algo.npy" --algo $algo -q
    run 0 plan $model --input "$rooms/test/000005.ply" --train --algo $algo --json
    printf '%s\n' "$(number peak "$out")" >>"$work/sizes"
done
same "$work/default/last/weights.safetensors" "$work/default.run/last/weights.safetensors"
same "$work/default.npy" "$work/implicit-gemm.npy"
# they are others: their last bits and their workspaces are
differ "mvmr-k is the default" "$work/default.npy" "$work/mvmr-k.npy"
differ "im2col is mvmr-k" "$work/im2col.npy" "$work/mvmr-k.npy"
check "peaks of the plans: $(sort -u "$work/sizes" | tr '\n' ' ')" test "$(sort -u "$work/sizes" | wc -l)" -ge 3

refused="--algo is default, mvmr-k"
run 2 train $model --config "$work/run.yaml" -o "$work/none" --algo mvmr
says "$refused"
run 2 eval $model --weights "$work/default" --config "$work/run.yaml" --algo mvmr
says "$refused"
run 2 infer $model --weights "$work/default" --input "$rooms/test/000005.ply" -o "$work/none.npy" --algo mvmr
says "$refused"
run 2 infer $model --weights x --input y -o z.npy --device cuda --precision bf16 --algo im2col
says "computes in fp32"
finish
