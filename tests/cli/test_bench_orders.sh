# pnet-bench ablate orders and pnet-bench layer: what they print, and what they refuse.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 20000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench

run 0 ablate orders --scene "$scene" --points 9000 --bucket 64 --repeat 1 --json
valid_json "$out"
prints '"points":9000'
# A curve brings points nearer than a hash of all voxels does, for buckets and for scopes.
near() { tr '{' '\n' <"$out" | sed -n "s/.*\"order\":\"$1\",\"raced\":false,\"bucket_m\":\([0-9.]*\),\"scope_m\":\([0-9.]*\).*/\1 \2/p"; }
check "hilbert is near" awk -v a="$(near hilbert)" -v b="$(near xor_mod)" \
    'BEGIN { split(a, h, " "); split(b, x, " "); exit !(h[1] > 0 && h[1] < x[1] / 2 && h[2] < x[2] / 2) }'
run 0 ablate orders --scene "$scene" --points 900 --repeat 1
prints "raced zorder-div"
prints "times on the CPU"
# nothing races on the CPU, and z is made by nothing
check "no time of a race" awk '$1 == "raced" && $5 != "-" { exit 1 }' "$out"
check "no time of z" awk '$1 == "z" && $4 != "-" || $1 == "z_mod" && $4 <= 0 { exit 1 }' "$out"
run 2 ablate orders
says "--scene is needed"
run 1 ablate orders --scene "$work/none.ply"
says "none.ply"

run 0 layer 'x -> linear(48) -> attend(2, order="hilbert", bucket=64, scope=2)' --points 700 --batch 2 --repeat 1 --json
valid_json "$out"
prints '"layer":"attend"'
prints '"rows":1400'
run 0 layer 'x -> linear(8)' --points 300 --repeat 1 --flop linear=1e6
prints "GFLOP/s forward"
run 0 layer 'x -> linear(8) -> interpolate(to=level(p))' --queries 12 --batch 2 --repeat 1 --json
valid_json "$out"
prints '"layer":"interpolate","rows":288,"width":8'
run 3 layer 'x -> attend(3)' --points 300
says "attend"
run 2 layer
says "one EXPRESSION"
run 2 layer 'x -> linear(8)' --points 300 --repeat 1 --flop attend=1e6
says "the expression has no layer attend"
# a sample that is dropped as a whole leaves a loss of 0
run 0 layer 'x -> linear(8) -> drop_path(1, each=sample)' --points 300 --repeat 1 --json
valid_json "$out"
prints '"layer":"drop_path"'

# Layers without weights, of other levels too, and of positions alone; each has a gradient.
for layer in 'x -> interpolate(to=level(p))' 'x -> pool(max, to=sample) -> expand(g)' 'x -> dropout(0.5)' 'x * x' \
    'p.xyz -> linear(24) -> attend(1, order="hilbert", cell=5cm)'; do
    run 0 layer "$layer" --points 300 --repeat 3 --json
    valid_json "$out"
    check "$layer: layers with times" test "$(grep -oE '"forward_ms":[0-9.e-]+,"backward_ms":[0-9.e-]*[1-9]' "$out" | wc -l)" = \
        "$(case $layer in *' -> '*' -> '*) echo 2 ;; *) echo 1 ;; esac)"
done

# A cloud without points has no distances.
echo 'x y z' >"$work/none.csv"
for study in orders map; do
    run 4 ablate $study --scene "$work/none.csv" --repeat 1
    says "none.csv has no points"
done
run 0 ablate orders --scene "$work/none.csv" --scene "$scene" --points 900 --repeat 1
check "distances of numbers" awk '/nan/ { exit 1 }' "$out"
run 2 ablate orders --scene "$scene" --steps
says "--steps are those of a GPU"
finish
