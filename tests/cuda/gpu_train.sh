# Training and inference on a GPU against the CPU: the losses of the first ten steps, the same bits from run to run,
# results of inference. Skipped where there is no GPU.
. tests/cli/common.sh

run_config() { # KIND FILE: ten steps of plain SGD at a rate where rounding does not grow into something else
    cat >"$2" <<END
data: $1
steps: ${3:-10}
batch_size: 3
optimizer: {name: sgd, momentum: 0.9}
lr: ${4:-0.002}
schedule: constant
workers: 1
save_every: {steps: 1000}
eval_every: {steps: 1000}
END
}

"$pnetc" data synth rooms -o "$work/rooms" --count 10 --points 3000 --seed 5 >/dev/null 2>&1
"$pnetc" data synth shapes -o "$work/shapes" --count 24 --points 600 --seed 6 >/dev/null 2>&1
"$pnetc" data synth partial -o "$work/partial" --count 24 --points 1024 --seed 7 >/dev/null 2>&1
run_config rooms "$work/tiny.yaml"
run_config rooms "$work/rooms.yaml"
echo 'inputs: {cloud: {height: z}}' >>"$work/rooms.yaml"
run_config shapes "$work/shapes.yaml"
# Norms of a batch of three clouds magnify rounding with each step. These rates change the losses by 2 and 1 %; rates that are a part
# of 100,000 higher change them by 3e-6 and 3e-4. apml is a sum over points.
run_config partial "$work/partial.yaml" 10 2e-6
run_config partial "$work/apml.yaml" 10 1e-9

got=0
"$pnetc" train tests/cli/tiny.pnet --config "$work/tiny.yaml" -o "$work/probe" --device cuda -q 2>"$err" || got=$?
if [ "$got" = 6 ]; then
    echo "skipped: $(cat "$err")"
    exit 77
fi
[ "$got" = 0 ] || cat "$err"
check "a training on the GPU" test "$got" = 0

losses() { # RUNDIR
    grep -oE "\"${key:-loss}\": *[0-9.eE+-]+" "$1/metrics.jsonl" | sed 's/.*: *//'
}

# agree A B TOLERANCE WHAT: losses of two runs, relative.
agree() {
    local worst
    losses "$1" >"$work/a"
    losses "$2" >"$work/b"
    worst=$(paste "$work/a" "$work/b" | awk -v n="$5" '
        { d = $1 - $2; if (d < 0) d = -d; s = $1 < 0 ? -$1 : $1; r = s ? d / s : d; if (!(r <= w)) w = r; rows++ }
        END { print(rows >= n ? w + 0 : "only " rows " steps") }')
    if awk -v w="$worst" -v t="$3" 'BEGIN { exit !(w ~ /^[0-9.e+-]+$/ && w <= t) }'; then
        pass
        echo "$4: losses agree to $worst"
    else
        fail "$4: losses differ by $worst"
    fi
}

floats() { # FILE.npy: its float32 numbers, a line each
    od -A n -t f4 -v -w4 -j $((10 + $(od -A n -t u2 -j 8 -N 2 "$1"))) "$1"
}

both() { # MODEL CONFIG NAME [OPTIONS]
    local model=$1 config=$2 name=$3
    shift 3
    run 0 train "$model" --config "$config" -o "$work/cpu_$name" -q "$@"
    run 0 train "$model" --config "$config" -o "$work/gpu_$name" -q --device cuda "$@"
    agree "$work/cpu_$name" "$work/gpu_$name" "${bound:-1e-4}" "$name" 10
}

both tests/cli/tiny.pnet "$work/tiny.yaml" tiny
both tests/cli/tiny.pnet "$work/tiny.yaml" tiny_voxel --mode voxel
both models/rooms.pnet "$work/rooms.yaml" rooms
both models/shapes.pnet "$work/shapes.yaml" shapes

# Attention, and points that a network generates, with a loss by nearest points and one by sparse transport.
both models/flash3d.pnet "$work/tiny.yaml" flash3d --set classes=12 --set c=16 --set v=10cm
both models/ptv3.pnet "$work/tiny.yaml" ptv3 --set classes=12 --set c=16 --set v=10cm --set patch=64
both models/pcn.pnet "$work/partial.yaml" pcn --set coarse=64
bound=5e-3 both models/pcn.pnet "$work/apml.yaml" pcn_apml --set coarse=16 --set 'way="apml"'

# The same bits from run to run, and with the schedule recorded or not recorded alike.
run 0 train models/rooms.pnet --config "$work/rooms.yaml" -o "$work/again" -q --device cuda
same "$work/gpu_rooms/last/weights.safetensors" "$work/again/last/weights.safetensors"

# Precisions train too.
for precision in tf32 bf16 fp16; do
    run 0 train models/rooms.pnet --config "$work/rooms.yaml" -o "$work/$precision" -q --device cuda --precision $precision
    agree "$work/cpu_rooms" "$work/$precision" 5e-2 "$precision" 10
done

# Generated points are float32 in bf16 too. The layers before them round each number to 8 bits, by 2^-9 at most, here a dozen
# times in a row: that moves points by 1 or 2 parts of 100 and the squares of distances by twice as much. The second stage has norms
# that magnify it (test_predicted of test_cuda_runner.c).
run 0 train models/pcn.pnet --config "$work/partial.yaml" -o "$work/pcn_bf16" -q --device cuda --precision bf16 --set coarse=64
key=loss.rough agree "$work/gpu_pcn" "$work/pcn_bf16" 5e-2 "pcn in bf16" 10

# A loss whose gradients fp16 does not hold: its scale falls until they fit, and the steps that follow count.
sed 's/^loss .*/& * 1000000/' tests/cli/tiny.pnet >"$work/steep.pnet"
run_config rooms "$work/steep.yaml" 30 2e-8
run 0 train "$work/steep.pnet" --config "$work/steep.yaml" -o "$work/steep" -q --device cuda --precision fp16
scale=$(grep -o '"loss_scale": *[0-9]*' "$work/steep/last/state.json" | grep -o '[0-9]*$')
check "a loss scale of $scale" test "$scale" -lt 65536
losses "$work/steep" >"$work/a"
check "a steep loss falls" awk '{ x[NR] = $1 } END { exit !(NR == 30 && x[30] < 0.8 * x[1]) }' "$work/a"
echo "steep: a loss scale of $scale, losses from $(head -n 1 "$work/a") to $(tail -n 1 "$work/a")"

# A run goes on from the other device's checkpoint.
run_config rooms "$work/more.yaml" 12
echo 'inputs: {cloud: {height: z}}' >>"$work/more.yaml"
run 0 train models/rooms.pnet --config "$work/more.yaml" -o "$work/cpu_rooms" --resume -q --device cuda
# Inference: the same classes but for near ties.
room=$(ls "$work"/rooms/*/*.ply | head -n 1)
run 0 infer models/rooms.pnet --weights "$work/cpu_rooms" --input "$room" -o "$work/cpu.npy"
run 0 infer models/rooms.pnet --weights "$work/cpu_rooms" --input "$room" -o "$work/gpu.npy" --device cuda
check "scores of both devices" test "$(npy_shape "$work/cpu.npy")" = "$(npy_shape "$work/gpu.npy")"
for precision in bf16 fp16; do
    run 0 infer models/rooms.pnet --weights "$work/cpu_rooms" --input "$room" -o "$work/$precision.npy" --device cuda --precision $precision
    check "scores in $precision" test "$(npy_shape "$work/cpu.npy")" = "$(npy_shape "$work/$precision.npy")"
    # float32 numbers behind the header, as the CPU's
    worst=$(paste <(floats "$work/cpu.npy") <(floats "$work/$precision.npy") | awk '
        { d = $1 - $2; e += d * d; s += $1 * $1; rows++ } END { print(rows && s > 0 ? sqrt(e / s) : "nothing") }')
    check "scores in $precision are off by $worst" awk -v w="$worst" 'BEGIN { exit !(w ~ /^[0-9.e+-]+$/ && w <= 0.05) }'
done
finish
