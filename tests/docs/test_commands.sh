# The commands of docs/training.md work, in the order in which they stand there.
set -u
root=$PWD
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/training.md > "$work/commands"
count=$(wc -l < "$work/commands")
[ "$count" -ge 15 ] || { echo "only $count commands found: is the extraction broken?" >&2; exit 1; }
ln -s "$root/models" "$work/models"
mkdir "$work/bin"
ln -s "$pnetc" "$work/bin/pnetc"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2 XDG_CACHE_HOME=$work/cache
cd "$work" || exit 1
while read -r line; do
    if ! sh -c "$line" > output 2>&1 < /dev/null; then
        printf 'docs/training.md: %s\n' "$line" >&2
        tail -n 20 output >&2
        exit 1
    fi
done < commands
# What the text says is there, is there.
for file in out/short/config.yaml out/short/model.pnet out/short/metrics.jsonl out/short/last/state.json \
    out/short/best/weights.safetensors out/short/report.html out/labelled.ply out/scores.npy out/both/000009.ply \
    out/both/000019.ply out/features.npy out/compare/native/report.html out/compare/voxel/report.html \
    out/tuned/kernels.yaml out/rooms.svg; do
    [ -s "$file" ] || { echo "docs/training.md: $file was not made" >&2; exit 1; }
done
[ "$(grep -c gradient_norm out/short/metrics.jsonl)" = 12 ] || { echo 'metrics.jsonl does not hold 12 steps' >&2; exit 1; }
echo "$count commands"
