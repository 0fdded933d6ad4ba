# pnet-bench net on a GPU: what its layers take adds up to the recorded passes. Skipped where there is no GPU.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 50000 --seed 3 -j 1
scene=$(find "$work/rooms" -name '*.ply' | head -n 1)
pnetc=$(dirname "$pnetc")/bench/pnet-bench
"$pnetc" net models/rooms.pnet --scene "$scene" --device cuda --repeat 1 --json >"$out" 2>"$err" || [ $? != 6 ] || {
    echo "skipped: $(cat "$err")"
    exit 77
}

sum() { # KEY: of all layers
    sed 's/.*"layers": *\[//' "$out" | grep -oE "\"$1\": *[0-9.eE+-]+" | awk '{ s += $2 } END { print s }' FS=': *'
}

# A pass takes some microseconds to begin, and gradients of losses are copied before backward.
for model in rooms resnet18; do
    for precision in fp32 bf16; do
        run 0 net "models/$model.pnet" --scene "$scene" --device cuda --precision "$precision" \
            --check-points 2000 --repeat 11 --json
        for pass in forward backward; do
            whole=$(number "recorded_${pass}_ms" "$out") layers=$(sum "${pass}_ms") mark=$(number "mark_${pass}_ms" "$out")
            check "$model, $precision: layers take $layers of $whole ms $pass" \
                awk "BEGIN { exit !($layers < 1.1 * $whole && $layers > 0.9 * $whole - 0.02) }"
            check "$model, $precision: a mark of $mark ms $pass" awk "BEGIN { exit !($mark > -0.002 && $mark < 0.01) }"
        done
        alone=$(number optimizer_alone_ms "$out") wall=$(number optimizer_ms "$out")
        check "$model, $precision: the optimiser alone takes $alone of $wall ms" \
            awk "BEGIN { exit !($alone > 0 && $alone < $wall) }"
    done
done
finish
