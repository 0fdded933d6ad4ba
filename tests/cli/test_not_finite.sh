# A training whose numbers overflow ends, and names the layer where that began.
. tests/cli/common.sh
needs python3
run 0 data synth rooms -o "$work/rooms" --count 2 --points 1000 --seed 6 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\nlr: 1e-5\neval_every: 0\n' >"$work/run.yaml"
run 0 train tests/cli/tiny.pnet --config "$work/run.yaml" -o "$work/fine" -q --seed 2
# overflow LAYER OP: trains with weights of that layer alone that are finite, but too large for sums.
overflow() {
    python3 -c '
import json, struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", b[:8])[0]
begin, end = json.loads(b[8:8 + n])[sys.argv[2] + ".weight"]["data_offsets"]
count = (end - begin) // 4
b[8 + n + begin:8 + n + end] = struct.pack("<%df" % count, *[3e38] * count)
open(sys.argv[3], "wb").write(b)' "$work/fine/last/weights.safetensors" "$1" "$work/large.safetensors"
    rm -rf "$work/run"
    run 1 train tests/cli/tiny.pnet --config "$work/run.yaml" -o "$work/run" -q --seed 2 --weights "$work/large.safetensors"
    says 'the loss or its gradient is not finite at step 0: '
    says "the first such number is in the results of \`$1\` ($2): row "
    says 'A lower learning rate, or clip_grad, may help'
}
layers=$("$pnetc" info "$work/fine/last" | grep -oE 'tiny\.[^ ]*conv\.weight')
check "convolutions are there" test "$(wc -l <<<"$layers")" = 4
for layer in $layers; do overflow "${layer%.weight}" conv; done
overflow tiny.out.linear linear
finish
