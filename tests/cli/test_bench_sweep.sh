# pnet-bench sweep: every study on the CPU, small; a wrong command line.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench
layer="--scene $scene --cell 0.2 --radius 0.4 --repeat 1"

# shellcheck disable=SC2086
run 0 sweep channels $layer --most 60 --json
valid_json "$out"
check "ten widths" test "$(grep -o '"cin": [0-9]*' "$out" | sort -u | wc -l)" = 10
check "checked against double" test "$(grep -o '"error": [0-9.]*e-0[6-9]' "$out" | wc -l)" = 30
# shellcheck disable=SC2086
run 0 sweep groups $layer --most 200 --channels 12
prints " 12 ->   12     12    fp32 |"
check "groups that divide" test "$(grep -c ' 12 ->   12 ' "$out")" = 4
# shellcheck disable=SC2086
run 0 sweep kernels $layer --most 60 --channels 3 --json
valid_json "$out"
check "3, 5, 7 .. 17 cells an axis" test "$(grep -o '"kernel": [0-9]*, ' "$out" | head -1)$(grep -o '"kernel": [0-9]*}' "$out" | tr -d '\n')" = \
    '"kernel": 3, "kernel": 3}"kernel": 5}"kernel": 7}"kernel": 9}"kernel": 11}"kernel": 13}"kernel": 15}"kernel": 17}'
check "of the same triplets" test "$(grep -o '"triplets": [0-9]*' "$out" | sort -u | wc -l)" = 1
# shellcheck disable=SC2086
run 0 sweep sizes $layer --most 11000 --channels 4
prints "   10000 "
prints "forward: time grows as triplets to the"
check "two sizes" test "$(grep -c '    4 ->    4 ' "$out")" = 2
# shellcheck disable=SC2086
run 0 sweep precisions $layer --most 500 --channels 8
check "the CPU has one" test "$(grep -c '    8 ->    8 ' "$out")" = 1
run 0 conv --scene sphere:8 --scene sphere:9 --cell 1 --mode voxel --channels 4,8 --repeat 1 --json
valid_json "$out"
# all voxels of an 8^3 grid from 2.75 to 4 of its middle, and of a 9^3 one from 3.25 to 4.5
rows=$(awk 'function shell(n, x, y, z, r, c) {
        for (x = 0; x < n; x++) for (y = 0; y < n; y++) for (z = 0; z < n; z++) {
            r = sqrt((x - n / 2 + .5) ^ 2 + (y - n / 2 + .5) ^ 2 + (z - n / 2 + .5) ^ 2)
            c += r >= n / 2 - 1.25 && r <= n / 2
        }
        return c
    } BEGIN { print shell(8) + shell(9) }')
prints "\"rows\": $rows,"

run 2 sweep channels
says "--scene is needed"
# shellcheck disable=SC2086
run 2 sweep width $layer
says "channels, groups, kernels, small, sizes, precisions and spheres"
# shellcheck disable=SC2086
run 2 sweep channels $layer --storage 16
says "--storage 16 is for bf16 and fp16"
# shellcheck disable=SC2086
run 2 sweep channels $layer --precision bf16
says "the CPU computes fp32"
run 2 conv --scene sphere:2 --channels 4,4
says "a sphere has 3 to 1024 cells"
finish
