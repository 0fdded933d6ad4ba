# pnet-bench cpu: one run with everything beside its target.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench
run 0 cpu --scene "$scene" --cell 0.2 --radius 0.4 --dense 64 --rounds 2 --json
valid_json "$out"
for key in forward_ms dF_ms dW_ms sgemm_gflops geometry_ms; do prints "\"$key\": "; done
check "three widths" test "$(grep -o '"channels": [0-9]*' "$out" | sort -u | wc -l)" = 3
run 0 cpu --scene "$scene" --scene "$scene" --cell 0.2 --radius 0.4 --dense 64 --rounds 1
prints "128 -> 128"
prints "raw points to sorted triplets"
run 2 cpu
says "--scene is needed"
run 1 cpu --scene "$work/none.ply"
says "none.ply: cannot open"
finish
