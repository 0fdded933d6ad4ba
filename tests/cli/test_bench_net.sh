# pnet-bench net: every part and layer of a training step, checked first; models and clouds that do not fit.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 2 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench

run 0 net models/rooms.pnet --scene "$scene" --scene "$scene" --check-points 500 --repeat 1 --json
valid_json "$out"
for key in inference_ms geometry_ms forward_ms backward_ms optimizer_ms step_with_geometry_ms inference_peak_bytes \
    training_peak_bytes conv linear norm other loss not_convolution layers; do prints "\"$key\":"; done
check "two samples" grep -qE '"samples": ?2' "$out"
check "the gradients agree" grep -qE '"gradient_error": ?[0-9.]*e-[0-9]+' "$out"
convolutions=$(grep -oE '"op": ?"conv"' "$out" | wc -l)
check "all convolutions of the model" test "$convolutions" -ge 5
run 0 net models/rooms.pnet --scene "$scene" --mode voxel --optimizer sgd --check-points 500 --repeat 1 --layers
prints "voxel"
prints "is not convolution"
check "a line for every convolution" test "$(grep -cE '^[^ ]+ +conv ' "$out")" = "$convolutions"

run 2 net --scene "$scene"
says "which model?"
run 2 net models/rooms.pnet
says "--scene is needed"
run 2 net models/rooms.pnet --scene "$scene" --precision bf16
says "the CPU computes fp32"
printf 'pnet 1\ninput cloud { xyz : position }\nnet n(p: cloud) { return ones(grid(p, 5cm)) }\n' >"$work/bad.pnet"
run 3 net "$work/bad.pnet" --scene "$scene"
says "bad.pnet: error: the model has no loss"
run 1 net models/rooms.pnet --scene "$work/none.ply"
says "none.ply: cannot open"
finish
