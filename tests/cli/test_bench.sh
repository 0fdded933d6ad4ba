# pnet-bench: algorithms compared on one layer, and over sizes with charts; the stages of the geometry.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench
layer="--scene $scene --cell 0.2 --radius 0.4"

# shellcheck disable=SC2086
run 0 conv $layer --channels 8,12 --algo all --repeat 1 --json
valid_json "$out"
for algo in default mvmr-k mvmr-i mvmr-j im2col gather-gemm-scatter implicit-gemm; do prints "\"algo\": \"$algo\""; done
# shellcheck disable=SC2086
run 0 conv $layer --channels 8,8 --groups 2 --algo mvmr-j --repeat 1
prints "mvmr-j"
check "one algorithm alone" hides -q "mvmr-k" "$out"
# shellcheck disable=SC2086
run 2 conv $layer --channels 8,8 --algo mvmr
says "--algo is all"
# shellcheck disable=SC2086
run 2 conv $layer --channels 8,8 --algo im2col --precision bf16 --device cuda
says "fp32"

for study in sort gemm knn width; do
    # shellcheck disable=SC2086
    run 0 ablate $study $layer --channels 8 --product dW --repeat 1 --output "$work/$study"
    prints "default"
    valid_json "$work/$study.json"
    for chart in "$work/$study.svg" "$work/$study-memory.svg"; do
        check "$chart ends" grep -q '^</svg>$' "$chart"
        check "lines of $chart" test "$(grep -c 'fill="none"' "$chart")" = 4
        check "names of $chart" grep -q '>mvmr-k</text>' "$chart"
        check "numbers of $chart" hides -qiE 'nan|inf' "$chart"
    done
done
check "four sizes" test "$(grep -o '"rows"' "$work/sort.json" | wc -l)" = 4
check "five widths" test "$(grep -o '"channels": [0-9]*' "$work/width.json" | sort -u | wc -l)" = 5
# shellcheck disable=SC2086
run 2 ablate order $layer
says "sort, gemm, knn and width"
# shellcheck disable=SC2086
run 1 ablate sort $layer --channels 8 --repeat 1 --output "$work/nowhere/x"
says "nowhere/x.json"
run 1 ablate sort --scene "$work/none.ply"
says "none.ply: cannot open"

run 0 ablate map --scene "$scene" --scene sphere:9 --cell 0.1 --repeat 2 --output "$work/map"
valid_json "$work/map.json"
for algo in search binary binary-half hash hash-half; do
    check "$algo is equal" grep -q "\"algo\": \"$algo\"[^}]*\"equal\": true" "$work/map.json"
done
check "triplets" grep -qE '"triplets": [1-9]' "$work/map.json"
run 0 ablate map --scene "$scene" --cell 0.1 --kernel 2 --factor 2 --repeat 1 --output "$work/map"
check "search and hash alone, and equal" test "$(grep -o '"equal": true' "$work/map.json" | wc -l)" = 2
run 2 ablate map --scene "$scene" --kernel 4
says "odd"
run 1 ablate map --scene sphere:9 --cell 1 --repeat 1 --output "$work/nowhere/x"
says "nowhere/x.json"

# shellcheck disable=SC2086
run 0 geometry $layer --runs 2 --json
valid_json "$out"
prints '"to_triplets_ms": '
check "triplets" grep -qE '"triplets": [1-9]' "$out"
run 0 geometry --scene sphere:16 --cell 1 --mode voxel --runs 1
prints "raw points to triplets"
run 2 geometry
says "Usage: pnet-bench geometry"
finish
