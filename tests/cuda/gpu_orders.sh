# pnet-bench ablate orders on a GPU: orders equal those of the host, and threads that race leave a permutation in buckets that
# have room, of one sample and of two; the program checks both. Skipped where there is no GPU.
. tests/cli/common.sh
"$pnetc" data synth rooms -o "$work/rooms" --count 2 --points 70000 --seed 3 >/dev/null 2>&1
pnetc=$(dirname "$pnetc")/bench/pnet-bench
set -- --scene "$work/rooms/train/000000.ply" --repeat 3 --device cuda
got=0
"$pnetc" ablate orders "$@" --points 300 >"$out" 2>"$err" || got=$?
if [ "$got" = 6 ]; then
    echo "skipped: $(cat "$err")"
    exit 77
fi
check "a short run: $(cat "$err")" test "$got" = 0
# more buckets than counters of shared memory too
for bucket in 512 64 4; do
    run 0 ablate orders "$@" --bucket "$bucket"
    prints "times on the GPU"
    run 0 ablate orders "$@" --scene "$work/rooms/train/000001.ply" --bucket "$bucket" --json
    valid_json "$out"
    check "every order but z has a time" test "$(grep -o '"ms":' "$out" | wc -l)" = 10
done
# every way to make an order, of which one is in use: equal to the order of the host after its last step
for bucket in 512 4; do
    run 0 ablate orders "$@" --steps --bucket "$bucket"
    run 0 ablate orders "$@" --steps --scene "$work/rooms/train/000001.ply" --bucket "$bucket"
    check "six orders in three ways" test "$(grep -cE ' (apart|joined|cub) ' "$out")" = 18
done
finish
