# --algo on a GPU: every algorithm trains what the default does, in schedules that are recorded once and replayed, and infers
# the same. Skipped where there is no GPU.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
"$pnetc" data synth rooms -o "$work/rooms" --count 8 --points 2000 --seed 5 >/dev/null 2>&1
cat >"$work/run.yaml" <<END
data: rooms
steps: 12
batch_size: 3
optimizer: {name: sgd, momentum: 0.9}
lr: 0.002
schedule: constant
save_every: {steps: 1000}
eval_every: {steps: 1000}
END

got=0
"$pnetc" train $model --config "$work/run.yaml" -o "$work/default" --device cuda -q 2>"$err" || got=$?
if [ "$got" = 6 ]; then
    echo "skipped: $(cat "$err")"
    exit 77
fi
check "a training on the GPU: $(cat "$err")" test "$got" = 0

losses() { # RUNDIR
    grep -oE '"loss": *[0-9.eE+-]+' "$1/metrics.jsonl" | sed 's/.*: *//'
}

losses "$work/default" >"$work/want"
check "twelve losses" test "$(wc -l <"$work/want")" = 12
for algo in mvmr-k mvmr-i mvmr-j im2col gather-gemm-scatter implicit-gemm; do
    run 0 train $model --config "$work/run.yaml" -o "$work/$algo" --device cuda --algo $algo -q
    losses "$work/$algo" >"$work/got"
    worst=$(paste "$work/want" "$work/got" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d / $1 <= w)) w = d / $1 } END { print w + 0 }')
    check "$algo: losses differ by $worst" awk -v w="$worst" 'BEGIN { exit !(w <= 1e-4) }'
    run 0 infer $model --weights "$work/default/last" --input "$work/rooms/test/000007.ply" -o "$work/$algo.npy" --device cuda --algo $algo -q
    run 0 infer $model --weights "$work/default/last" --input "$work/rooms/test/000007.ply" -o "$work/cpu.npy" --algo $algo -q
    check "$algo: shapes" test "$(npy_shape "$work/$algo.npy")" = "$(npy_shape "$work/cpu.npy")"
    echo "$algo: losses agree to $worst"
done
finish
