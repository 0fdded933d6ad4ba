# bench/autocast.py: PyTorch builds the networks that pnet-bench writes, and has their losses and gradients. Skipped without
# PyTorch.
. tests/cli/common.sh
needs python3
python3 -c 'import torch' 2>/dev/null || { echo 'skipped: there is no PyTorch'; exit 77; }
run 0 data synth rooms -o "$work/rooms" --count 1 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench

# autocast CODE ARGUMENTS...
autocast() {
    local want=$1 got=0
    shift
    python3 bench/autocast.py "$@" >"$out" 2>"$err" || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "exit code $got instead of $want: $(tail -n 3 "$err")"; fi
}

for net in 'fcgf native' 'minkunet18a voxel' 'resnet18 native'; do
    set -- $net
    run 0 net models/$1.pnet --scene "$scene" --check-points 600 --mode $2 --gradients --write "$work/$1"
    autocast 0 "$work/$1"
    for column in 'torch bf16' 'torch fp16' 'fixed bf16' 'stored bf16' 'pnet fp32' 'pnet plain'; do prints "$column "; done
done
run 0 net models/fcgf.pnet --scene "$scene" --check-points 600 --gradients --seed 2 --write "$work/second"
autocast 0 "$work/fcgf" "$work/second"
prints "means of 2 folders"
autocast 0 "$work/fcgf" --json
valid_json "$out"

# Another network than the one whose gradients are there, and a layer without a rule.
cp "$work/second/weights.npy" "$work/fcgf/weights.npy"
autocast 1 "$work/fcgf"
says "the networks are not the same"
sed -i 's/"op":"l2norm"/"op":"softmax"/' "$work/second/network.json"
autocast 1 "$work/second"
says "no rule for the layer 'softmax'"
finish
